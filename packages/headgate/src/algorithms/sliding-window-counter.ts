/**
 * Sliding-window counter: two numbers stand for the log. Aligned windows are counted, and the previous one is taken
 * to have been evenly filled, so the part of it that still overlaps the sliding window counts.
 *
 *   used(now) = current + previous × (window − elapsed) ÷ window          admit when used + cost ≤ limit
 *
 * The estimate is rounded up, against the caller. It is continuous where windows meet.
 *
 * Invariant: at most `limit` in an aligned window, at most 2 × limit − 1 in any window (attained).
 */

import { type Algorithm, NEVER, NOT_CHARGED, type Outcome } from './algorithm.js'
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

/** Units admitted in the window that began at `startUs`, and in the one before it; when it was last reset, or 0. */
export interface CounterState {
  startUs: number
  current: number
  previous: number
  resetUs: number
}

function empty(): CounterState {
  return { startUs: 0, current: 0, previous: 0, resetUs: 0 }
}

/**
 * The time the state is read at. A clock that stepped back waits at the start of the stored window, unless that lies
 * so far ahead that one unit could be denied for more than two windows: then the state counts as forgotten.
 */
function effectiveNow(limit: CounterLimit, state: CounterState, nowUs: number): number {
  return state.startUs > nowUs && !isForgotten(limit, state, nowUs) ? state.startUs : nowUs
}

function isForgotten(limit: CounterLimit, state: CounterState, nowUs: number): boolean {
  // Rounded up before it is taken away: what is left of a rounded difference can be a microsecond too much.
  return state.startUs - nowUs > limit.windowUs - Math.ceil(limit.windowUs / limit.limit)
}

function windowStart(limit: CounterLimit, atUs: number): number {
  // Exact below 2^53 (see exact-fraction.ts), and several times faster than % on numbers beyond 32 bits.
  return Math.floor(atUs / limit.windowUs) * limit.windowUs
}

function currentAt(state: CounterState, startUs: number): number {
  return state.startUs === startUs ? state.current : 0
}

function previousAt(limit: CounterLimit, state: CounterState, startUs: number): number {
  if (state.startUs === startUs) return state.previous
  return state.startUs + limit.windowUs === startUs ? state.current : 0
}

/** The units of the previous window that still count when `overlapUs` of it is inside the sliding one. */
function fadedUnits(limit: CounterLimit, previous: number, overlapUs: number): number {
  return previous === 0 ? 0 : mulDivCeil(previous, overlapUs, limit.windowUs)
}

function usedAt(limit: CounterLimit, state: CounterState, nowUs: number): number {
  const atUs = effectiveNow(limit, state, nowUs)
  const startUs = windowStart(limit, atUs)
  const overlapUs = limit.windowUs - (atUs - startUs)
  return currentAt(state, startUs) + fadedUnits(limit, previousAt(limit, state, startUs), overlapUs)
}

function decide(
  limit: CounterLimit,
  state: CounterState,
  units: number,
  nowUs: number,
  mayCharge: boolean,
  out: Outcome,
): void {
  const atUs = effectiveNow(limit, state, nowUs)
  const startUs = windowStart(limit, atUs)
  const endUs = startUs + limit.windowUs
  const current = currentAt(state, startUs)
  const previous = previousAt(limit, state, startUs)
  const used = current + fadedUnits(limit, previous, endUs - atUs)
  const left = limit.limit - used - units
  if (left >= 0 && mayCharge && units > 0) {
    state.startUs = startUs
    state.previous = previous
    state.current = current + units
    out.waitUs = 0
    out.remaining = left
    out.resetAfterUs = endUs + limit.windowUs - nowUs
    out.chargedAtUs = atUs
    return
  }
  out.waitUs = left >= 0 ? 0 : fitsAt(limit, startUs, current, previous, units) - nowUs
  out.remaining = Math.max(0, limit.limit - used)
  // The current units fade over the next window.
  out.resetAfterUs = current > 0 ? endUs + limit.windowUs - nowUs : previous > 0 ? endUs - nowUs : 0
  out.chargedAtUs = NOT_CHARGED
}

/** When a cost that does not fit now will, after a window that began at `startUs` with these units. */
function fitsAt(
  limit: CounterLimit,
  startUs: number,
  current: number,
  previous: number,
  cost: number,
): number {
  if (cost > limit.limit) return NEVER
  const spare = limit.limit - current - cost
  // Either enough of the previous window slides out while this one lasts, or this one must become the previous.
  if (spare >= 0) return startUs + fadeUs(limit, previous, spare)
  return startUs + limit.windowUs + fadeUs(limit, current, limit.limit - cost)
}

/** Elapsed time into a window at which at most `spare` of `previous` units still count. */
function fadeUs(limit: CounterLimit, previous: number, spare: number): number {
  if (previous <= spare) return 0
  return limit.windowUs - mulDivFloor(spare, limit.windowUs, previous)
}

/** Writes units down, whether they fit or not. */
function charge(limit: CounterLimit, state: CounterState, cost: number, nowUs: number): void {
  const atUs = effectiveNow(limit, state, nowUs)
  const startUs = windowStart(limit, atUs)
  const current = currentAt(state, startUs)
  state.previous = previousAt(limit, state, startUs)
  state.current = current + cost
  state.startUs = startUs
}

/** Charges units that were used already, as far as there is room. */
function chargeBeyond(limit: CounterLimit, state: CounterState, units: number, nowUs: number): void {
  const charged = Math.min(units, roomBeyond(limit, usedAt(limit, state, nowUs)))
  if (charged > 0) charge(limit, state, charged, nowUs)
}

/** Takes back up to `units` from the window of `chargedAtUs`, or from the oldest without it. Returns the units. */
function refund(
  limit: CounterLimit,
  state: CounterState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
): number {
  if (units < 0) {
    chargeBeyond(limit, state, -units, nowUs)
    return 0
  }
  if (chargedAtUs !== null && chargedAtUs <= state.resetUs) return 0
  const startUs = windowStart(limit, effectiveNow(limit, state, nowUs))
  let current = currentAt(state, startUs)
  let previous = previousAt(limit, state, startUs)
  const chargedStartUs = chargedAtUs === null ? null : windowStart(limit, chargedAtUs)
  let left = units
  if (chargedStartUs === null || chargedStartUs === startUs - limit.windowUs) {
    const back = Math.min(left, previous)
    previous -= back
    left -= back
  }
  if (chargedStartUs === null || chargedStartUs === startUs) {
    const back = Math.min(left, current)
    current -= back
    left -= back
  }
  if (left === units) return 0
  state.startUs = startUs
  state.current = current
  state.previous = previous
  return units - left
}

function reset(limit: CounterLimit, state: CounterState, nowUs: number): void {
  state.resetUs = Math.max(state.resetUs, effectiveNow(limit, state, nowUs))
  state.startUs = 0
  state.current = 0
  state.previous = 0
}

/** Units that count beyond the end of this window can only have been admitted in it. */
function usedUp(limit: CounterLimit, untilUs: number, nowUs: number): CounterState {
  const startUs = windowStart(limit, nowUs)
  const isOfThisWindow = untilUs > startUs + limit.windowUs
  const units = limit.limit
  return { startUs, current: isOfThisWindow ? units : 0, previous: isOfThisWindow ? 0 : units, resetUs: 0 }
}

/** The state matters until its window has been the previous one; catching up with a back-step comes on top. */
function keepForUs(limit: CounterLimit, state: CounterState, nowUs: number): number {
  return Math.max(0, state.startUs - nowUs) + 2 * limit.windowUs
}

/** A counter: `startUs` in the first half of the row, `current` and `previous` in the quarters of the second. */
class CounterView extends RowView implements CounterState {
  get startUs(): number {
    return this.page.doubles[this.index * 2] as number
  }
  set startUs(value: number) {
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

export const slidingWindowCounterAlgorithm: Algorithm<CounterLimit, CounterState> = {
  name: 'sliding-window-counter',
  kind: 'rate',
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
    const startUs = windowStart(limit, effectiveNow(limit, state, nowUs))
    return currentAt(state, startUs) === 0 && previousAt(limit, state, startUs) === 0
  },
  rows: () => new TypedRows((page, index) => new CounterView(page, index)),
  wire: {
    code: '2',
    script: 'decide_counter',
    span: limit => limit.windowUs,
    parts: () => 0,
    mostLeft: limit => limit.limit,
    remaining: (_limit, left) => left,
    resetAfterUs: (limit, _left, nowUs) => windowStart(limit, nowUs) + 2 * limit.windowUs - nowUs,
  },
  toJSON() {
    return this.name
  },
}

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
