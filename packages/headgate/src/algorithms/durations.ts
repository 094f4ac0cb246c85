import { unexpected } from '../errors/headgate-error.js'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd'

/** A length of time: `'500ms'`, `'10s'`, `'1m'`, `'1h'`, `'1d'`, or a bare number of seconds. */
export type Duration = `${number}${Unit}` | number

const UNIT_US: Readonly<Record<Unit, number>> = {
  ms: 1_000,
  s: 1_000_000,
  m: 60_000_000,
  h: 3_600_000_000,
  d: 86_400_000_000,
}
const PATTERN = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)$/

const MIN_US = UNIT_US.ms
const MAX_US = 366 * UNIT_US.d

/**
 * Parses a duration from 1 ms to 366 days, or to `maxUs`, into microseconds. Rejects anything else, naming `field`.
 */
export function parseDurationUs(value: unknown, field: string, maxUs = MAX_US): number {
  const us = typeof value === 'number' ? toWhole(value * UNIT_US.s) : textUs(value)
  if (us === null || !Number.isInteger(us) || us < MIN_US || us > maxUs) {
    const expected = `a duration from '1ms' to '${formatDurationUs(maxUs)}', such as '10s', '1m' or a number of seconds`
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', field, expected, value)
  }
  return us
}

function textUs(value: unknown): number | null {
  const match = typeof value === 'string' ? PATTERN.exec(value) : null
  if (match === null) return null
  return toWhole(Number(match[1]) * UNIT_US[match[2] as Unit])
}

/**
 * Rounds a product that misses a whole number only by binary rounding, such as 1.001 s in microseconds. Leaves
 * others as they are.
 */
export function toWhole(product: number): number {
  const whole = Math.round(product)
  return Math.abs(product - whole) <= 2 * Number.EPSILON * whole ? whole : product
}

/** Formats a duration exactly, in the largest unit that divides it. */
export function formatDurationUs(us: number): string {
  const units: readonly Unit[] = ['d', 'h', 'm', 's', 'ms']
  const unit = units.find(candidate => us % UNIT_US[candidate] === 0)
  return unit === undefined ? `${us}us` : `${us / UNIT_US[unit]}${unit}`
}

/** Writes a duration so that it can be read again: one that formatDurationUs writes in microseconds, in milliseconds. */
export function durationOption(us: number): string {
  return us % UNIT_US.ms === 0 ? formatDurationUs(us) : `${us / UNIT_US.ms}ms`
}

/** Spells a duration out for a reader: `16h40m`. */
function spellDurationUs(us: number): string {
  const units: readonly Unit[] = ['d', 'h', 'm', 's']
  let left = us
  return units.reduce((text, unit) => {
    const whole = Math.floor(left / UNIT_US[unit])
    left -= whole * UNIT_US[unit]
    return whole === 0 ? text : `${text}${whole}${unit}`
  }, '')
}

let hasWarned = false

/**
 * Parses a limit's window into microseconds. A bare number is seconds here but milliseconds in other limiters, so a
 * number that looks like milliseconds is accepted with a warning, once per process.
 */
export function parseWindowUs(window: Duration): number {
  const us = parseDurationUs(window, 'window')
  const doubt = doubtOfWindow(window)
  if (doubt !== null && !hasWarned) {
    hasWarned = true
    console.warn(`[headgate] ${WINDOW_IN_SECONDS}: window: ${doubt}`)
  }
  return us
}

const WINDOW_IN_SECONDS = 'WARN_HEADGATE_WINDOW_IN_SECONDS'

/**
 * Explains how a window that looks like milliseconds is taken and what to write instead; null for any other window.
 */
export function doubtOfWindow(window: unknown): string | null {
  if (typeof window !== 'number' || window < 1_000 || window % 1_000 !== 0) return null
  return (
    `${window} is a number of seconds, ${spellDurationUs(window * UNIT_US.s)}. ` +
    `If milliseconds were meant, write '${window / 1_000}s'; if not, '${window}s' says so without this warning.`
  )
}

/** Runs `read` without that warning, for a caller that reports each window with its place in the file. */
export function withoutWindowWarning<T>(read: () => T): T {
  const before = hasWarned
  hasWarned = true
  try {
    return read()
  } finally {
    hasWarned = before
  }
}
