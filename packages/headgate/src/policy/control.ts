import { invalidOption, show } from '../errors/headgate-error.js'

/** The switches of a whole fleet. */
export interface Control {
  /** If false, everything passes, and every decision says so. */
  readonly enabled: boolean
  /** Scales every limit: 1.5 gives headroom, 0 pauses throttling. */
  readonly multiplier: number
}

/** The switches if nobody has set any. */
export const NORMAL: Control = { enabled: true, multiplier: 1 }

const MAX_MULTIPLIER = 1_000
const ON = ['true', '1', 'on', 'yes']
const OFF = ['false', '0', 'off', 'no']
// Strict on purpose: '', '0x0' or '1e3', written by mistake, must not become a number, least of all 0.
const DECIMAL = /^\d{1,4}(?:\.\d{1,6})?$/

/**
 * Reads control from the fields of its hash, which people also edit by hand. A field that cannot be understood is
 * treated as unset, so that all processes agree, and reported to `warn`.
 */
export function readControl(
  fields: Readonly<Record<string, string>>,
  warn: (message: string) => void,
): Control {
  const { enabled, multiplier } = fields
  return {
    enabled: enabled === undefined ? NORMAL.enabled : (readSwitch(enabled, warn) ?? NORMAL.enabled),
    multiplier:
      multiplier === undefined ? NORMAL.multiplier : (readMultiplier(multiplier, warn) ?? NORMAL.multiplier),
  }
}

function readSwitch(text: string, warn: (message: string) => void): boolean | null {
  const word = text.trim().toLowerCase()
  if (ON.includes(word)) return true
  if (OFF.includes(word)) return false
  warn(
    `control enabled: expected true, on, yes or 1, or false, off, no or 0; got ${show(text)}, which is ignored`,
  )
  return null
}

function readMultiplier(text: string, warn: (message: string) => void): number | null {
  const word = text.trim()
  const value = DECIMAL.test(word) ? Number(word) : Number.NaN
  if (value <= MAX_MULTIPLIER) return value
  warn(
    `control multiplier: expected a number from 0 to ${MAX_MULTIPLIER}; got ${show(text)}, which is ignored`,
  )
  return null
}

/** Returns the hash fields for a change, rejecting whatever `readControl` could not read back. */
export function controlFields(change: Partial<Control>): Record<string, string> {
  const isChange = typeof change === 'object' && change !== null
  const unknown = isChange ? Object.keys(change).find(name => !Object.hasOwn(NORMAL, name)) : ''
  if (unknown !== undefined) {
    const expected = 'an object of enabled and multiplier'
    throw invalidOption('control', expected, unknown || change)
  }
  const fields: Record<string, string> = {}
  if (change.enabled !== undefined) {
    if (typeof change.enabled !== 'boolean') {
      throw invalidOption('enabled', 'true or false', change.enabled)
    }
    fields.enabled = String(change.enabled)
  }
  if (change.multiplier !== undefined) {
    // An object may have a toString that throws.
    const text = typeof change.multiplier === 'number' ? String(change.multiplier) : ''
    if (readMultiplier(text, () => {}) === null) {
      const expected = `a number from 0 to ${MAX_MULTIPLIER} with at most 6 decimals`
      throw invalidOption('multiplier', expected, change.multiplier)
    }
    fields.multiplier = text
  }
  return fields
}
