/**
 * Sliding-window counter: two numbers stand for the log. Aligned windows are counted, and the previous one is taken
 * to have been evenly filled, so the part of it that still overlaps the sliding window counts.
 *
 *   used(now) = current + previous × (window − elapsed) ÷ window          admit when used + cost ≤ limit
 *
 * The estimate is rounded down, so that a steady caller who keeps to the limit passes; it is continuous where windows meet.
 * Time is counted in whole milliseconds.
 *
 * Invariant: at most `limit` in an aligned window, at most 2 × limit in any window.
 */

import { type AloneReply, defineAlgorithm, NEVER, NOT_CHARGED, type Outcome } from './algorithm.js'
import { formatDurationUs } from './durations.js'
import { mulDivCeil, mulDivFloor } from './exact-fraction.js'
import { counted, parseKnown, roomBeyond } from './limit-options.js'
import { RowView, TypedRows } from './rows.js'
import { type BucketedCounterLimit, slidingWindowBucketsAlgorithm } from './sliding-window-buckets.js'
import {
  parseWindow,
  type WindowLimit,
  type WindowOptions,
  windowLeasing,
  windowNumbers,
  windowWords,
  writtenWindow,
} from './window.js'

export type CounterLimit = WindowLimit

export interface CounterOptions extends WindowOptions {
  /**
   * Cuts the window into this many parts and counts the oldest one whole: exact in any window, and slightly
   * stricter.
   */
  readonly buckets?: number
}

/** With `buckets`, the limit is one of sub-windows. */
function parse(options: unknown): CounterLimit | BucketedCounterLimit {
  const names = Object.keys(slidingWindowBucketsAlgorithm.fields)
  const known = parseKnown<CounterOptions>(options, 'slidingWindowCounter', names)
  if (known.buckets !== undefined) return slidingWindowBucketsAlgorithm.parse(known)
  const numbers = parseWindow(known)
  return Object.freeze({
    algorithm: slidingWindowCounterAlgorithm,
    ...counted(known, kindOf(numbers.windowUs)),
    ...numbers,
  })
}

function kindOf(windowUs: number): string {
  return `counter-${formatDurationUs(windowUs)}`
}

/** Units admitted in the window that began at `startMs`, and in the one before it; the millisecond of the last reset, or 0. */
export interface CounterState {
  startMs: number
  current: number
  previous: number
  resetUs: number
}

function empty(): CounterState {
  return { startMs: 0, current: 0, previous: 0, resetUs: 0 }
}

const MS_US = 1_000

function windowMs(limit: CounterLimit): number {
  return limit.windowUs / MS_US
}

function toMs(nowUs: number): number {
  return Math.floor(nowUs / MS_US)
}

/**
 * The time the state is read at. A clock that stepped back waits at the start of the stored window, unless that lies
 * so far ahead that one unit could be denied for more than two windows: then the state counts as forgotten.
 */
function effectiveMs(limit: CounterLimit, state: CounterState, nowMs: number): number {
  return state.startMs > nowMs && !isForgotten(limit, state, nowMs) ? state.startMs : nowMs
}

function isForgotten(limit: CounterLimit, state: CounterState, nowMs: number): boolean {
  const lengthMs = windowMs(limit)
  // Rounded up before it is taken away: what is left of a rounded difference can be a millisecond too much.
  return state.startMs - nowMs > lengthMs - Math.ceil(lengthMs / limit.limit)
}

function windowStart(limit: CounterLimit, atMs: number): number {
  const lengthMs = windowMs(limit)
  // Exact below 2^53 (see exact-fraction.ts), and several times faster than % on numbers beyond 32 bits.
  return Math.floor(atMs / lengthMs) * lengthMs
}

function currentAt(state: CounterState, startMs: number): number {
  return state.startMs === startMs ? state.current : 0
}

function previousAt(limit: CounterLimit, state: CounterState, startMs: number): number {
  if (state.startMs === startMs) return state.previous
  return state.startMs + windowMs(limit) === startMs ? state.current : 0
}

/** The units of the previous window that still count when `overlapMs` of it is inside the sliding one. */
function fadedUnits(limit: CounterLimit, previous: number, overlapMs: number): number {
  return previous === 0 ? 0 : mulDivFloor(previous, overlapMs, windowMs(limit))
}

function usedAt(limit: CounterLimit, state: CounterState, nowMs: number): number {
  const atMs = effectiveMs(limit, state, nowMs)
  const startMs = windowStart(limit, atMs)
  const overlapMs = windowMs(limit) - (atMs - startMs)
  return currentAt(state, startMs) + fadedUnits(limit, previousAt(limit, state, startMs), overlapMs)
}

function decide(
  limit: CounterLimit,
  state: CounterState,
  units: number,
  nowUs: number,
  mayCharge: boolean,
  out: Outcome,
): void {
  const nowMs = toMs(nowUs)
  const atMs = effectiveMs(limit, state, nowMs)
  const startMs = windowStart(limit, atMs)
  const endMs = startMs + windowMs(limit)
  const current = currentAt(state, startMs)
  const previous = previousAt(limit, state, startMs)
  const used = current + fadedUnits(limit, previous, endMs - atMs)
  const left = limit.limit - used - units
  if (left >= 0 && mayCharge && units > 0) {
    state.startMs = startMs
    state.previous = previous
    state.current = current + units
    out.waitUs = 0
    out.remaining = left
    out.resetAfterUs = endMs * MS_US + limit.windowUs - nowUs
    out.chargedAtUs = Math.max(atMs * MS_US, nowUs)
    return
  }
  out.waitUs = left >= 0 ? 0 : fitsAt(limit, startMs, current, previous, units) * MS_US - nowUs
  out.remaining = Math.max(0, limit.limit - used)
  // The current units fade over the next window.
  const emptyMs = current > 0 ? endMs + windowMs(limit) : endMs
  out.resetAfterUs = used === 0 ? 0 : emptyMs * MS_US - nowUs
  out.chargedAtUs = NOT_CHARGED
}

/** When a cost that does not fit now will, after a window that began at `startMs` with these units. */
function fitsAt(
  limit: CounterLimit,
  startMs: number,
  current: number,
  previous: number,
  cost: number,
): number {
  if (cost > limit.limit) return NEVER
  const spare = limit.limit - current - cost
  // Either enough of the previous window slides out while this one lasts, or this one must become the previous.
  if (spare >= 0) return startMs + fadeMs(limit, previous, spare)
  return startMs + windowMs(limit) + fadeMs(limit, current, limit.limit - cost)
}

/** Elapsed time into a window at which at most `spare` of `previous` units, rounded down, still count. */
function fadeMs(limit: CounterLimit, previous: number, spare: number): number {
  if (previous <= spare) return 0
  return windowMs(limit) + 1 - mulDivCeil(windowMs(limit), spare + 1, previous)
}

/** Writes units down, whether they fit or not. */
function charge(limit: CounterLimit, state: CounterState, cost: number, nowMs: number): void {
  const startMs = windowStart(limit, effectiveMs(limit, state, nowMs))
  const current = currentAt(state, startMs)
  state.previous = previousAt(limit, state, startMs)
  state.current = current + cost
  state.startMs = startMs
}

/** Charges units that were used already, as far as there is room. */
function chargeBeyond(limit: CounterLimit, state: CounterState, units: number, nowMs: number): void {
  const charged = Math.min(units, roomBeyond(limit, usedAt(limit, state, nowMs)))
  if (charged > 0) charge(limit, state, charged, nowMs)
}

/** Takes back up to `units` from the window of `chargedAtUs`, or from the oldest without it. Returns the units. */
function refund(
  limit: CounterLimit,
  state: CounterState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
): number {
  const nowMs = toMs(nowUs)
  if (units < 0) {
    chargeBeyond(limit, state, -units, nowMs)
    return 0
  }
  if (chargedAtUs !== null && toMs(chargedAtUs) * MS_US <= state.resetUs) return 0
  const startMs = windowStart(limit, effectiveMs(limit, state, nowMs))
  let current = currentAt(state, startMs)
  let previous = previousAt(limit, state, startMs)
  const chargedStartMs = chargedAtUs === null ? null : windowStart(limit, toMs(chargedAtUs))
  let left = units
  if (chargedStartMs === null || chargedStartMs === startMs - windowMs(limit)) {
    const back = Math.min(left, previous)
    previous -= back
    left -= back
  }
  if (chargedStartMs === null || chargedStartMs === startMs) {
    const back = Math.min(left, current)
    current -= back
    left -= back
  }
  if (left === units) return 0
  state.startMs = startMs
  state.current = current
  state.previous = previous
  return units - left
}

function reset(limit: CounterLimit, state: CounterState, nowUs: number): void {
  state.resetUs = Math.max(state.resetUs, effectiveMs(limit, state, toMs(nowUs)) * MS_US)
  state.startMs = 0
  state.current = 0
  state.previous = 0
}

/** Units that count beyond the end of this window can only have been admitted in it. */
function usedUp(limit: CounterLimit, untilUs: number, nowUs: number): CounterState {
  const startMs = windowStart(limit, toMs(nowUs))
  const isOfThisWindow = untilUs > startMs * MS_US + limit.windowUs
  const units = limit.limit
  return { startMs, current: isOfThisWindow ? units : 0, previous: isOfThisWindow ? 0 : units, resetUs: 0 }
}

/** The state matters until its window has been the previous one; catching up with a back-step comes on top. */
function keepForUs(limit: CounterLimit, state: CounterState, nowUs: number): number {
  return Math.max(0, state.startMs * MS_US - nowUs) + 2 * limit.windowUs
}

/** A counter: `startMs` in the first half of the row, `current` and `previous` in the quarters of the second. */
class CounterView extends RowView implements CounterState {
  get startMs(): number {
    return this.page.doubles[this.index * 2] as number
  }
  set startMs(value: number) {
    this.page.doubles[this.index * 2] = value
  }
  get current(): number {
    return this.page.integers[this.index * 4 + 2] as number
  }
  set current(value: number) {
    this.page.integers[this.index * 4 + 2] = value
  }
  get previous(): number {
    return this.page.integers[this.index * 4 + 3] as number
  }
  set previous(value: number) {
    this.page.integers[this.index * 4 + 3] = value
  }
}

/** The window's number is told by its last digit: whoever knows the time to within five windows knows it. */
const DIGITS = 10
/** Replies of one integer are read with the server's clock as this process knows it, which five short windows may exceed. */
const LEAST_ALONE_MS = 1_000
/** The most units of the previous window that the stored number can say. */
const MOST_IN_NUMBER = 9_999_999

/** `(left × 2·window + time to live − 1) × 10 + the last digit of the window's number`: see lua/algorithms. */
const alone: AloneReply<CounterLimit> = {
  isPossible(limit) {
    const lengthMs = windowMs(limit)
    const most = (limit.limit + 1) * 2 * lengthMs * DIGITS
    return (
      lengthMs >= LEAST_ALONE_MS &&
      most <= Number.MAX_SAFE_INTEGER &&
      lengthMs * MOST_IN_NUMBER <= Number.MAX_SAFE_INTEGER
    )
  },
  read(limit, reply, serverUs, out) {
    const lengthMs = windowMs(limit)
    const digit = reply % DIGITS
    const rest = (reply - digit) / DIGITS
    const ttlMs = (rest % (2 * lengthMs)) + 1
    const left = Math.floor(rest / (2 * lengthMs))
    if (left >= limit.limit || ttlMs <= lengthMs) return false
    // The window nearest to the server's clock whose number ends in the digit.
    const elapsedMs = 2 * lengthMs - ttlMs
    const near = Math.round((toMs(serverUs) - elapsedMs) / lengthMs)
    const number = near + ((((digit - near) % DIGITS) + DIGITS + DIGITS / 2) % DIGITS) - DIGITS / 2
    out.waitUs = 0
    out.remaining = left
    out.resetAfterUs = ttlMs * MS_US
    out.chargedAtUs = (number * lengthMs + elapsedMs) * MS_US
    return true
  },
}

export const slidingWindowCounterAlgorithm = /* @__PURE__ */ defineAlgorithm<CounterLimit, CounterState>(
  () => ({
    name: 'sliding-window-counter',
    fields: slidingWindowBucketsAlgorithm.fields,
    sample: { limit: 1, window: '1m' },
    parse,
    optionsOf: limit => writtenWindow(limit, kindOf(limit.windowUs)),
    describe: windowWords,
    ...windowNumbers,
    // Stays as it is: a lease ends with the aligned window it was granted in, and the bound is one of those.
    lease: {
      ...windowLeasing,
      strict: (limit, lease) => ({ ...limit, lease }),
      lastsUs: (limit, lease, chargedAtUs) =>
        Math.min(lease.ttlUs, limit.windowUs - (chargedAtUs % limit.windowUs)),
    },
    empty,
    decide,
    refund,
    reset,
    usedUp,
    keepForUs,
    isUncharged(limit, state, nowUs) {
      const startMs = windowStart(limit, effectiveMs(limit, state, toMs(nowUs)))
      return currentAt(state, startMs) === 0 && previousAt(limit, state, startMs) === 0
    },
    rows: () => new TypedRows((page, index) => new CounterView(page, index)),
    wire: {
      kind: 'counter',
      numbers: limit => [limit.limit, windowMs(limit)],
      mostLeft: limit => limit.limit,
      charged(limit, left, nowUs, out) {
        out.waitUs = 0
        out.remaining = left
        out.resetAfterUs = windowStart(limit, toMs(nowUs)) * MS_US + 2 * limit.windowUs - nowUs
        out.chargedAtUs = nowUs
      },
      decided(limit, [previous, current, startMs, resetMs], units, nowUs, isCharged, out) {
        const state = {
          startMs: Number(startMs),
          current: Number(current),
          previous: Number(previous),
          resetUs: Number(resetMs) * MS_US,
        }
        decide(limit, state, units, nowUs, isCharged, out)
      },
      alone,
    },
    toJSON() {
      return this.name
    },
  }),
)

/**
 * Creates a limit that admits about `limit` in any window from two stored numbers; with `buckets`, at most `limit`,
 * exactly.
 *
 * @example
 * slidingWindowCounter({ limit: 50_000, window: '1d' })
 */
export function slidingWindowCounter(
  options: CounterOptions & { readonly buckets: number },
): BucketedCounterLimit
export function slidingWindowCounter(options: WindowOptions & { readonly buckets?: never }): CounterLimit
export function slidingWindowCounter(options: CounterOptions): CounterLimit | BucketedCounterLimit
export function slidingWindowCounter(options: CounterOptions): CounterLimit | BucketedCounterLimit {
  return parse(options)
}
