/**
 * Sliding-window counter in sub-windows, the conservative one: the window is cut into B parts and the oldest of the
 * B + 1 parts it touches counts whole.
 *
 *   used(now) = Σ counts of the current part and the B before it          admit when used + cost ≤ limit
 *
 * Invariant: at most `limit` in any window, exactly; the price is an effective window of up to window × (1 + 1/B).
 */
import { type Algorithm, NEVER, NOT_CHARGED, type Outcome } from './algorithm.js'
import { formatDurationUs } from './durations.js'
import { COUNTS_FIELD, counted, NAME_FIELD, parseKnown, parseWhole, roomBeyond } from './limit-options.js'
import { ObjectRows } from './rows.js'
import {
  LIMIT_FIELD,
  parseWindow,
  WINDOW_FIELD,
  type WindowLimit,
  type WindowOptions,
  windowLeasing,
  windowNumbers,
  windowWords,
  writtenWindow,
} from './window.js'

export interface BucketedCounterLimit extends WindowLimit {
  readonly buckets: number
}

/** Those of `slidingWindowCounter()` that make a limit of this kind. */
interface BucketsOptions extends WindowOptions {
  readonly buckets: number
}

const MAX_BUCKETS = 1_000

const FIELDS = {
  limit: LIMIT_FIELD,
  window: WINDOW_FIELD,
  buckets: {
    kind: 'parts',
    text: 'Divides the window into parts and counts the oldest as a whole: exact in any window, slightly stricter.',
  },
  counts: COUNTS_FIELD,
  name: NAME_FIELD,
} as const

function parse(options: unknown): BucketedCounterLimit {
  const known = parseKnown<BucketsOptions>(options, 'slidingWindowCounter', Object.keys(FIELDS))
  const numbers = parseWindow(known)
  const buckets = parseWhole(known.buckets, 'buckets', 1, MAX_BUCKETS)
  return Object.freeze({
    algorithm: slidingWindowBucketsAlgorithm,
    ...counted(known, kindOf(numbers.windowUs, buckets)),
    ...numbers,
    buckets,
  })
}

function kindOf(windowUs: number, buckets: number): string {
  return `counter-${formatDurationUs(windowUs)}-${buckets}`
}

/** Units by part, newest first; `startUs` is the start of the newest part, `resetUs` the time of the last reset, or 0. */
export interface BucketsState {
  startUs: number
  counts: number[]
  resetUs: number
}

function empty(): BucketsState {
  return { startUs: 0, counts: [], resetUs: 0 }
}

/** Rounded up, so that B parts never cover less than the window. */
function partUs(limit: BucketedCounterLimit): number {
  return Math.ceil(limit.windowUs / limit.buckets)
}

function effectiveNow(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): number {
  return state.startUs > nowUs && !isForgotten(limit, state, nowUs) ? state.startUs : nowUs
}

/** As for the counter: a clock that stepped back must not deny for more than two windows. */
function isForgotten(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): boolean {
  return state.startUs - nowUs > 2 * limit.windowUs - (limit.buckets + 1) * partUs(limit)
}

function partStart(limit: BucketedCounterLimit, atUs: number): number {
  return atUs - (atUs % partUs(limit))
}

/** How many parts have begun since the newest stored one; at B + 1 nothing stored counts any more. */
function partsSince(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): number {
  if (isForgotten(limit, state, nowUs)) return limit.buckets + 1
  const startUs = partStart(limit, effectiveNow(limit, state, nowUs))
  return Math.min(limit.buckets + 1, (startUs - state.startUs) / partUs(limit))
}

/** How many of the stored parts count, from the newest on. */
function liveParts(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): number {
  return limit.buckets + 1 - partsSince(limit, state, nowUs)
}

function usedAt(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): number {
  const live = liveParts(limit, state, nowUs)
  let used = 0
  for (let age = 0; age < live; age++) used += state.counts[age] ?? 0
  return used
}

function decide(
  limit: BucketedCounterLimit,
  state: BucketsState,
  units: number,
  nowUs: number,
  mayCharge: boolean,
  out: Outcome,
): void {
  const live = liveParts(limit, state, nowUs)
  let used = 0
  let newest = -1
  for (let age = 0; age < live; age++) {
    const count = state.counts[age] ?? 0
    if (count > 0 && newest < 0) newest = age
    used += count
  }
  const left = limit.limit - used - units
  if (left >= 0 && mayCharge && units > 0) {
    out.chargedAtUs = charge(limit, state, units, nowUs)
    out.waitUs = 0
    out.remaining = left
    out.resetAfterUs = leavesAtUs(limit, state, 0) - nowUs
    return
  }
  out.waitUs = left >= 0 ? 0 : fitsAt(limit, state, live, units, -left) - nowUs
  out.remaining = Math.max(0, limit.limit - used)
  out.resetAfterUs = newest < 0 ? 0 : leavesAtUs(limit, state, newest) - nowUs
  out.chargedAtUs = NOT_CHARGED
}

/** When units fit that are `excess` too many now: once so many parts have left, the oldest first. */
function fitsAt(
  limit: BucketedCounterLimit,
  state: BucketsState,
  live: number,
  units: number,
  excess: number,
): number {
  if (units > limit.limit) return NEVER
  let left = excess
  let age = live - 1
  for (; age > 0; age--) {
    left -= state.counts[age] ?? 0
    if (left <= 0) break
  }
  return leavesAtUs(limit, state, age)
}

function leavesAtUs(limit: BucketedCounterLimit, state: BucketsState, age: number): number {
  return state.startUs + (limit.buckets + 1 - age) * partUs(limit)
}

/** When what is charged now stops counting. */
function newestLeavesUs(limit: BucketedCounterLimit, nowUs: number): number {
  return partStart(limit, nowUs) + (limit.buckets + 1) * partUs(limit)
}

/** Writes the charge down; Returns the time it counts at. */
function charge(limit: BucketedCounterLimit, state: BucketsState, cost: number, nowUs: number): number {
  const atUs = effectiveNow(limit, state, nowUs)
  roll(limit, state, nowUs)
  state.counts[0] = (state.counts[0] ?? 0) + cost
  return atUs
}

function roll(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): void {
  const parts = partsSince(limit, state, nowUs)
  const startUs = partStart(limit, effectiveNow(limit, state, nowUs))
  if (parts > limit.buckets) state.counts.length = 0
  else for (let part = 0; part < parts; part++) state.counts.unshift(0)
  state.counts.length = Math.min(state.counts.length, limit.buckets + 1)
  state.startUs = startUs
}

/** Charges units that were used already, as far as there is room. */
function chargeBeyond(limit: BucketedCounterLimit, state: BucketsState, units: number, nowUs: number): void {
  const charged = Math.min(units, roomBeyond(limit, usedAt(limit, state, nowUs)))
  if (charged > 0) charge(limit, state, charged, nowUs)
}

/** Takes back up to `units` from the part of `chargedAtUs`, or from the oldest without it. Returns the units. */
function refund(
  limit: BucketedCounterLimit,
  state: BucketsState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
): number {
  if (units < 0) {
    chargeBeyond(limit, state, -units, nowUs)
    return 0
  }
  if (chargedAtUs !== null && chargedAtUs <= state.resetUs) return 0
  const live = liveParts(limit, state, nowUs)
  const chargedAge =
    chargedAtUs === null ? null : (state.startUs - partStart(limit, chargedAtUs)) / partUs(limit)
  let left = units
  for (let age = live - 1; age >= 0; age--) {
    if (chargedAge !== null && chargedAge !== age) continue
    const back = Math.min(left, state.counts[age] ?? 0)
    if (back > 0) state.counts[age] = (state.counts[age] as number) - back
    left -= back
  }
  if (left < units) roll(limit, state, nowUs)
  return units - left
}

function reset(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): void {
  state.resetUs = Math.max(state.resetUs, effectiveNow(limit, state, nowUs))
  state.startUs = 0
  state.counts.length = 0
}

/** As if all of it had been admitted in the newest part that counts; rounded up to whole parts. */
function usedUp(limit: BucketedCounterLimit, untilUs: number, nowUs: number): BucketsState {
  const part = partUs(limit)
  const startUs = (Math.ceil(untilUs / part) - limit.buckets - 1) * part
  return { startUs: Math.min(startUs, partStart(limit, nowUs)), counts: [limit.limit], resetUs: 0 }
}

/** Two windows cover the B + 1 parts for any B; catching up with a clock that stepped back comes on top. */
function keepForUs(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): number {
  return Math.max(0, state.startUs - nowUs) + 2 * limit.windowUs
}

export const slidingWindowBucketsAlgorithm: Algorithm<BucketedCounterLimit, BucketsState> = {
  name: 'sliding-window-buckets',
  kind: 'rate',
  // A file names it as a counter, which has the same fields and hands options with `buckets` on.
  fields: FIELDS,
  sample: { limit: 1, window: '1m', buckets: 1 },
  parse,
  optionsOf: limit => ({
    ...writtenWindow(limit, kindOf(limit.windowUs, limit.buckets)),
    algorithm: 'sliding-window-counter',
    buckets: limit.buckets,
  }),
  describe: windowWords,
  ...windowNumbers,
  // Counts as many more parts as the TTL touches: what is spent in any window ≤ what is granted in window + TTL ≤ limit.
  lease: {
    ...windowLeasing,
    strict(limit, lease) {
      // Parts keep their length, so that what is stored keeps its meaning.
      const lengthUs = partUs(limit)
      const buckets = limit.buckets + Math.ceil(lease.ttlUs / lengthUs)
      return { ...limit, lease, buckets, windowUs: buckets * lengthUs }
    },
  },
  empty,
  decide,
  refund,
  reset,
  usedUp,
  keepForUs,
  isUncharged: (limit, state, nowUs) => usedAt(limit, state, nowUs) === 0,
  rows: () => new ObjectRows(empty),
  wire: {
    code: '3',
    script: null,
    span: limit => limit.windowUs,
    parts: limit => limit.buckets,
    mostLeft: limit => limit.limit,
    remaining: (_limit, left) => left,
    resetAfterUs: (limit, _left, nowUs) => newestLeavesUs(limit, nowUs) - nowUs,
  },
  toJSON() {
    return this.name
  },
}
