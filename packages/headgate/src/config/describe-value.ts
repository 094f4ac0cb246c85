const SHOWN_LENGTH = 40

/** How a value from a file or a request is named in a message: short, on one line, never a long secret. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (typeof value === 'string') {
    return value.length > SHOWN_LENGTH ? `a string of ${value.length} characters` : JSON.stringify(value)
  }
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object') return 'a map'
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `a ${typeof value}`
}
