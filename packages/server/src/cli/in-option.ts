/** Translates a rejection into the words of the command line. */
import { type HeadgateError, isHeadgateError } from 'headgate'
import { isStoreFailure } from '../admin/failure-answer.js'
import { RejectedError, UnavailableError } from '../operators/operator-errors.js'
import { UsageError } from './usage-error.js'

/** The option of the command line for each field of the decision API. */
const OPTIONS = new Map([
  ['enabled', '--on'],
  ['multiplier', '--multiplier'],
  ['subject', '--subject'],
  ['rule', '--rule'],
  ['tier', '--tier'],
  ['limits', '--limit'],
  ['ttl', '--ttl'],
  ['by', '--by'],
  ['reason', '--reason'],
])
const OWN_NUMBERS = /^(?:numbers\.|tier )(minute|hour|day|month|burst)$/

/** Converts an option's value, and names the option if the value is rejected. */
export function inOption<T>(option: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw isHeadgateError(error) ? (inPlace(option, error) ?? error) : error
  }
}

/** Converts an error of the library or of a server about a field to one about the option. */
export function inOptions(error: unknown): unknown {
  if (!(error instanceof RejectedError) && !isHeadgateError(error)) return error
  const { field, message } = error
  if (isHeadgateError(error) && isStoreFailure(error)) return new UnavailableError(`--redis: ${message}`)
  const option = field === undefined ? null : optionOf(field)
  const named = option === null ? null : inPlace(option, error)
  return named ?? (error instanceof RejectedError ? new UsageError(message) : error)
}

function inPlace(field: string, error: RejectedError | HeadgateError): UsageError | null {
  const { expected, got, suggestion } = error
  return expected === undefined ? null : new UsageError({ field, expected, got, suggestion })
}

function optionOf(field: string): string | null {
  const name = field.replace(/^override /, '')
  const own = OWN_NUMBERS.exec(name)?.[1]
  if (own !== undefined) return `--${own}`
  return OPTIONS.get(name.startsWith('limits.') ? 'limits' : name) ?? null
}
