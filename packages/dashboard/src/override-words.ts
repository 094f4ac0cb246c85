import type { Override } from './answers.js'
import { duration } from './format.js'

/** `minute 100, set by ada: launch day; for another 2 h`. */
export function overrideWords(override: Override): string {
  const { by, reason, expiresAt } = override
  return `${replacementWords(override)}, set by ${by}: ${reason}; for another ${duration(expiresAt - Date.now())}`
}

function replacementWords(override: Override): string {
  if ('tier' in override) return `tier ${override.tier}`
  if (!('numbers' in override) && !('limits' in override)) return 'banned'
  const numbers = 'numbers' in override ? override.numbers : override.limits
  return Object.entries(numbers)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ')
}
