import { quoted } from '../errors/shown-text.js'

/** Describes a value from a file or a request for a message: short, on one line, and never a long secret. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object') return 'a map'
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `a ${typeof value}`
}
