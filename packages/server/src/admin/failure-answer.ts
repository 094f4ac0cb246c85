import { type HeadgateError, isHeadgateError } from 'headgate'
import { type HttpAnswer, problemAnswer } from '../http/problem.js'
import type { WriteLine } from '../log/write-line.js'
import { RequestError } from './endpoint.js'

/** A store that is back is found again within a second. */
const RETRY_AFTER_SECONDS = '1'

/**
 * Returns the answer to a request that could not be served: 400 for the caller's mistake, 503 while the store is
 * away.
 */
export function failureAnswer(error: unknown, log: WriteLine): HttpAnswer {
  if (error instanceof RequestError) {
    return problemAnswer({ status: error.status, detail: error.message, ...error.mistake })
  }
  if (isHeadgateError(error)) {
    if (isCallersMistake(error)) return rejected(error)
    if (isStoreFailure(error)) {
      return problemAnswer({
        status: 503,
        detail: unavailableWords(error),
        headers: [['Retry-After', RETRY_AFTER_SECONDS]],
      })
    }
  }
  const { message: cause } = error as Error
  log(`decision API failed: ${cause}`, { level: 'error', cause, consequence: '500' })
  return problemAnswer({ status: 500, detail: 'The request could not be served.' })
}

/** In the body of a request, the library's `override ttl` is `ttl`. */
function rejected({ message, field, expected, got, suggestion }: HeadgateError): HttpAnswer {
  const inBody = field?.replace(/^override /, '').replace(/^tier (?=.)/, 'numbers.')
  return problemAnswer({ status: 400, detail: message, field: inBody, expected, got, suggestion })
}

function unavailableWords({ code, message }: HeadgateError): string {
  return code === 'ERR_HEADGATE_STORE_TIMEOUT' ? `${message}; a change may still be made` : message
}

/** Whether the caller has to change something. */
export function isCallersMistake({ code }: HeadgateError): boolean {
  return /^ERR_HEADGATE_(?:INVALID|UNKNOWN|UNREADABLE)_/.test(code)
}

/** Whether the store could not be asked, and the same request may work in a moment. */
export function isStoreFailure({ code }: HeadgateError): boolean {
  return /^ERR_HEADGATE_(?:STORE|CLOSED)/.test(code)
}
