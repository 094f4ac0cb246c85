import { HeadgateError, unexpected } from './headgate-error.js'
import { nearestName } from './nearest-name.js'
import { quoted, shownName } from './shown-text.js'

/** Throws for the first unknown option, because a misspelt one would otherwise be ignored silently. */
export function rejectUnknown(options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'options', 'an object', options)
  for (const name of Object.keys(options)) {
    if (known.includes(name) || (options as Record<string, unknown>)[name] === undefined) continue
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: shownName(name),
      expected: `one of ${known.join(', ')}`,
      got: quoted(name),
      suggestion: nearestName(name, known),
    })
  }
}
