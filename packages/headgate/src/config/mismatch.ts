import { nearestName } from '../errors/nearest-name.js'
import { describeValue } from './describe-value.js'

/**
 * Explains in one line why a value from outside is refused: what was expected, what came, and the known name it
 * resembles. The value is shortened and made printable; text that looks like a secret is left out.
 */
export function mismatch(expected: string, got: unknown, known: Iterable<string> = []): string {
  return mismatchText(expected, describeValue(got), nearestName(got, known))
}

/** Formats the same line for a value that is already described. */
export function mismatchText(expected: string, got: string, suggestion: string | null): string {
  const hint = suggestion === null ? '' : `; did you mean "${suggestion}"?`
  return `expected ${expected}; got ${got}${hint}`
}
