import { quoted } from '../errors/shown-text.js'
import { nearestName } from './nearest-name.js'

/**
 * Says in one line why a value from outside is refused: what was expected, what came, and the known name it resembles.
 * The value is shortened and made printable; text that looks like a secret is left out.
 */
export function mismatch(expected: string, got: unknown, known: Iterable<string> = []): string {
  return mismatchText(expected, describeValue(got), nearestName(got, known))
}

/** The same line for a value that was described before. */
export function mismatchText(expected: string, got: string, suggestion: string | null): string {
  const hint = suggestion === null ? '' : `; did you mean "${suggestion}"?`
  return `expected ${expected}; got ${got}${hint}`
}

/** Names a value from a file or a request: short, on one line, never a long secret. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object') return 'a map'
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `a ${typeof value}`
}
