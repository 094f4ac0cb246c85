import { type ErrorCode, HeadgateError, unexpected } from './headgate-error.js'
import { nearestName } from './nearest-name.js'
import { quoted, shownName } from './shown-text.js'

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
    throw new HeadgateError(code, {
      field: `${before}${shownName(name)}`,
      expected: `one of ${known.join(', ')}`,
      got: quoted(name),
      suggestion: nearestName(name, known),
    })
  }
}
