import { type ErrorCode, HeadgateError, show, unexpected } from './headgate-error.js'
import { nearestName } from './nearest-name.js'
import { shownName } from './shown-text.js'

/** What else an unknown option is told as: with another code, or behind the name of what it was given to. */
interface About {
  readonly code?: ErrorCode
  /** Comes before the name of the option. */
  readonly before?: string
}

/** Throws for the first unknown option, because a misspelt one would otherwise be ignored silently. */
export function rejectUnknown(
  options: object,
  known: readonly string[],
  { code = 'ERR_HEADGATE_INVALID_OPTION', before = '' }: About = {},
): void {
  if (typeof options !== 'object' || options === null) throw unexpected(code, 'options', 'an object', options)
  for (const name of Object.keys(options)) {
    if (known.includes(name) || (options as Record<string, unknown>)[name] === undefined) continue
    throw unknownName(`${before}${shownName(name)}`, name, known, code)
  }
}

/** Creates the error for a name that is none of those there are: says them, and which was probably meant. */
export function unknownName(
  field: string,
  got: unknown,
  known: Iterable<string>,
  code: ErrorCode = 'ERR_HEADGATE_INVALID_OPTION',
): HeadgateError {
  const names = [...known]
  return new HeadgateError(code, {
    field,
    expected: `one of ${names.join(', ') || 'none'}`,
    got: show(got),
    suggestion: nearestName(got, names),
  })
}
