import type { HeadgateError } from 'headgate'

/** Whether the caller has to change something. */
export function isCallersMistake({ code }: HeadgateError): boolean {
  return /^ERR_HEADGATE_(?:INVALID|UNKNOWN|UNREADABLE)_/.test(code)
}

/** Whether the store could not be asked, and the same may work in a moment. */
export function isStoreFailure({ code }: HeadgateError): boolean {
  return /^ERR_HEADGATE_(?:STORE|CLOSED)/.test(code)
}
