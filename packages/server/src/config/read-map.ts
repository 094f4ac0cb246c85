import { describeValue } from '../wording/describe-value.js'
import { suggestion } from '../wording/nearest-name.js'
import { formatPath, type Path, type Report } from './config-problem.js'

/** A map whose keys are all strings, or null after saying what came instead. */
export function readMap(value: unknown, path: Path, report: Report): ReadonlyMap<string, unknown> | null {
  if (!(value instanceof Map)) {
    report(path, `expected a map; got ${describeValue(value)}`)
    return null
  }
  const fields = new Map<string, unknown>()
  for (const [key, field] of value) {
    if (typeof key !== 'string')
      report([...path, String(key)], `expected a key that is text; got ${describeValue(key)}`, 'key')
    else if (key === '__proto__') report([...path, key], 'expected another key; this one is reserved', 'key')
    else fields.set(key, field)
  }
  return fields
}

/** As `readMap`, for a map with known keys; others are reported with the one that was probably meant. */
export function readFields(
  value: unknown,
  known: readonly string[],
  at: { readonly path: Path; readonly report: Report },
): ReadonlyMap<string, unknown> | null {
  const fields = readMap(value, at.path, at.report)
  for (const key of fields?.keys() ?? []) {
    if (known.includes(key)) continue
    const where = at.path.length === 0 ? 'at the top' : `in ${formatPath(at.path)}`
    at.report(
      [...at.path, key],
      `expected one of ${known.join(', ')} ${where}; got ${describeValue(key)}${suggestion(key, known)}`,
      'key',
    )
  }
  return fields
}
