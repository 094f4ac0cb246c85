import type { Mistake } from '../errors/mistake.js'
import { nearestName } from '../errors/nearest-name.js'
import { quoted } from '../errors/shown-text.js'

/** Describes a value from a file or a request for a message: short, on one line, and never a long secret. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object') return 'a map'
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `a ${typeof value}`
}

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
