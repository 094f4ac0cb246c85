import { type Duration, formatDurationUs, parseDurationUs } from '../algorithms/durations.js'
import { invalidOption } from '../errors/headgate-error.js'
import { rejectUnknown } from '../errors/reject-unknown.js'
import { wholeNumber } from '../errors/whole-number.js'

/** Lets a request wait for room instead of being denied. */
export interface WaitOptions {
  /** How long a request is held at most, up to a minute. One that needs longer is denied at once. A bare number is seconds. */
  readonly atMost: Duration
  /** How many requests of one caller may wait at once in this process; one more is denied at once. Default 100. */
  readonly queue?: number
}

/** The same, read. */
export interface Wait {
  readonly atMostMs: number
  readonly queue: number
}

/** A request that waits keeps its connection open. */
const MAX_WAIT_US = 60_000_000
/** How many may wait in a process, over all callers. */
export const MAX_WAITING = 10_000
export const DEFAULT_QUEUE = 100

/** Validates the options of a wait, naming `field`. */
export function parseWait(given: unknown, field = 'wait'): Wait {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalidOption(field, "{ atMost: '500ms', queue: 100 }", given)
  rejectUnknown(given, ['atMost', 'queue'], { before: `${field}.` })
  const { atMost, queue = DEFAULT_QUEUE } = given as Partial<WaitOptions>
  return {
    atMostMs: parseAtMostMs(atMost, `${field}.atMost`),
    queue: wholeNumber(queue, `${field}.queue`, 1, MAX_WAITING),
  }
}

export function parseAtMostMs(atMost: unknown, field: string): number {
  return parseDurationUs(atMost, field, MAX_WAIT_US) / 1_000
}

/** Returns what both allow. */
export function commonWait(one: Wait, other: Wait): Wait {
  return { atMostMs: Math.min(one.atMostMs, other.atMostMs), queue: Math.min(one.queue, other.queue) }
}

export function waitWords({ atMostMs, queue }: Wait): string {
  return `waits for room for at most ${formatDurationUs(atMostMs * 1_000)}, ${queue} of a caller at once`
}
