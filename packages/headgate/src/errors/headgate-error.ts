import { type Mistake, mistakeText } from './mistake.js'
import { quoted } from './shown-text.js'

const BRAND = Symbol.for('headgate.error')
/** Published with the package. */
const HELP_PAGE = 'https://unpkg.com/headgate/docs/errors.md'

/** The codes an error of this library can carry. Match on these, never on messages. */
export type ErrorCode =
  | 'ERR_HEADGATE_INVALID_LIMIT'
  | 'ERR_HEADGATE_INVALID_POLICY'
  | 'ERR_HEADGATE_INVALID_OPTION'
  | 'ERR_HEADGATE_INVALID_SUBJECT'
  | 'ERR_HEADGATE_INVALID_COST'
  | 'ERR_HEADGATE_INVALID_CONFIG'
  | 'ERR_HEADGATE_UNREADABLE_CONFIG'
  | 'ERR_HEADGATE_MISSING_PACKAGE'
  | 'ERR_HEADGATE_UNKNOWN_POLICY'
  | 'ERR_HEADGATE_UNKNOWN_TIER'
  | 'ERR_HEADGATE_NOT_CHARGED'
  | 'ERR_HEADGATE_NO_TURN'
  | 'ERR_HEADGATE_LOOKUP_TIMEOUT'
  | 'ERR_HEADGATE_CLOSED'
  | 'ERR_HEADGATE_STORE'
  | 'ERR_HEADGATE_STORE_TIMEOUT'
  | 'ERR_HEADGATE_STORE_REPLY'
  | 'ERR_HEADGATE_STORE_KEY'
  | 'ERR_HEADGATE_STORE_UNAVAILABLE'
  | 'ERR_HEADGATE_STORE_CAPPED'

/**
 * A malfunction or a mistake in how the library is used, with a stable `code`.
 * A denied request is never an error: it is a `Decision`.
 */
export class HeadgateError extends Error {
  readonly code: ErrorCode
  /** The address of the page that explains the code and what to do about it. */
  readonly help: string
  /** The option or field whose value was rejected; undefined if the error is about no value. */
  readonly field: string | undefined
  /** What the value should have been, in words. */
  readonly expected: string | undefined
  /** The value that came, shortened and without secrets; undefined if it must not be shown at all. */
  readonly got: string | undefined
  /** The known name that was probably meant. */
  readonly suggestion: string | undefined

  /** Takes what is wrong with a value, or the message of an error that is about none. */
  constructor(code: ErrorCode, wrong: Mistake | string, options?: ErrorOptions) {
    super(typeof wrong === 'string' ? wrong : mistakeText(wrong), options)
    this.name = 'HeadgateError'
    this.code = code
    this.help = `${HELP_PAGE}#${code.toLowerCase()}`
    const { field, expected, got, suggestion }: Partial<Mistake> = typeof wrong === 'string' ? {} : wrong
    this.field = field
    this.expected = expected
    this.got = got
    this.suggestion = suggestion ?? undefined
    Object.defineProperty(this, BRAND, { value: true })
  }
}

/** Creates the error for an unacceptable value: names the field, what was expected and what came. */
export function unexpected(code: ErrorCode, field: string, expected: string, got: unknown): HeadgateError {
  return new HeadgateError(code, { field, expected, got: show(got) })
}

/** The same for an option, which most of them are. */
export function invalidOption(field: string, expected: string, got: unknown): HeadgateError {
  return unexpected('ERR_HEADGATE_INVALID_OPTION', field, expected, got)
}

/** Recognises errors of any copy of this library, where `instanceof` only recognises its own. */
export function isHeadgateError(value: unknown): value is HeadgateError {
  return value instanceof Error && (value as { [BRAND]?: unknown })[BRAND] === true
}

/** Shows a rejected value in a message: short, on one line, and never a long secret. */
export function show(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'number' || typeof value === 'boolean' || value == null) return String(value)
  if (typeof value === 'bigint') return `${value}n`
  if (Array.isArray(value)) return `an array of ${value.length}`
  return `a value of type ${typeof value}`
}
