import type { Mistake } from '../errors/mistake.js'
import { nearestName } from '../errors/nearest-name.js'
import { describeValue } from './describe-value.js'

/**
 * Describes why a value from outside is rejected: what was expected, what came, and the known name it resembles. The
 * value is shortened and made printable; text that looks like a secret is left out.
 */
export function mistakeAt(
  field: string,
  expected: string,
  got: unknown,
  known: Iterable<string> = [],
): Mistake {
  return { field, expected, got: describeValue(got), suggestion: nearestName(got, known) }
}
