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

/** Microseconds of a duration from 1 ms to 366 days, or to `maxUs`; refuses anything else and names `field`. */
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

/** 1.001 seconds are not a whole number of microseconds in binary; what was meant is. Others stay as they are. */
export function toWhole(product: number): number {
  const whole = Math.round(product)
  return Math.abs(product - whole) <= 2 * Number.EPSILON * whole ? whole : product
}

/** The shortest exact way to write a duration, in the largest unit that divides it. */
export function formatDurationUs(us: number): string {
  const units: readonly Unit[] = ['d', 'h', 'm', 's', 'ms']
  const unit = units.find(candidate => us % UNIT_US[candidate] === 0)
  return unit === undefined ? `${us}us` : `${us / UNIT_US[unit]}${unit}`
}

let hasWarned = false

/**
 * Microseconds of a limit's window. Other limiters take milliseconds, and a bare number is seconds here: one that looks
 * like milliseconds is taken at its word, with one warning a process.
 */
export function parseWindowUs(window: Duration): number {
  const us = parseDurationUs(window, 'window')
  if (typeof window === 'number' && window >= 1_000 && window % 1_000 === 0) warnOfMilliseconds(window, us)
  return us
}

function warnOfMilliseconds(seconds: number, us: number): void {
  if (hasWarned) return
  hasWarned = true
  console.warn(
    `[headgate] WARN_HEADGATE_WINDOW_IN_SECONDS: window: ${seconds} is a number of seconds, ${formatDurationUs(us)}. ` +
      `If milliseconds were meant, write '${seconds / 1_000}s'; if not, '${seconds}s' says so without this warning.`,
  )
}
