import { duration } from './format.js'
import type { Override } from './snapshot.js'

/** `100 a minute, set by ada: launch day; for another 2 h`. */
export function overrideWords({ tier, numbers, limits, by, reason, expiresAt }: Override): string {
  const replaced = tier !== undefined ? `tier ${tier}` : pairs(numbers ?? limits ?? {})
  const left = expiresAt === undefined ? '' : `; for another ${duration(expiresAt - Date.now())}`
  return `${replaced}, set by ${by}: ${reason}${left}`
}

function pairs(numbers: Readonly<Record<string, unknown>>): string {
  return Object.entries(numbers)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ')
}
