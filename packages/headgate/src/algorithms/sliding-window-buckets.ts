/**
 * Sliding-window counter in sub-windows, the conservative one: the window is cut into B parts and the oldest of the
 * B + 1 parts it touches counts whole.
 *
 *   used(now) = Σ counts of the current part and the B before it          admit when used + cost ≤ limit
 *
 * A part is a whole number of milliseconds, rounded up.
 *
 * Invariant: at most `limit` in any window, exactly; the price is an effective window of up to B + 1 parts, which is
 * window × (1 + 1/B) if the window can be divided so.
 */
import { defineAlgorithm, NEVER, NOT_CHARGED, type Outcome } from './algorithm.js'
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
const MS_US = 1_000

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
  // A part cannot be shorter than a millisecond.
  const most = Math.min(MAX_BUCKETS, Math.floor(numbers.windowUs / MS_US))
  const buckets = parseWhole(known.buckets, 'buckets', 1, most)
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

/** Units by part, newest first; `startMs` is the start of the newest part, `resetUs` the time of the last reset, or 0. */
export interface BucketsState {
  startMs: number
  counts: number[]
  resetUs: number
}

function empty(): BucketsState {
  return { startMs: 0, counts: [], resetUs: 0 }
}

function toMs(nowUs: number): number {
  return Math.floor(nowUs / MS_US)
}

/** Rounded up, so that B parts never cover less than the window. */
function partMs(limit: BucketedCounterLimit): number {
  return Math.ceil(limit.windowUs / MS_US / limit.buckets)
}

function effectiveMs(limit: BucketedCounterLimit, state: BucketsState, nowMs: number): number {
  return state.startMs > nowMs && !isForgotten(limit, state, nowMs) ? state.startMs : nowMs
}

/** As for the counter: a clock that stepped back must not deny for more than two windows. */
function isForgotten(limit: BucketedCounterLimit, state: BucketsState, nowMs: number): boolean {
  return state.startMs - nowMs > (2 * limit.windowUs) / MS_US - (limit.buckets + 1) * partMs(limit)
}

function partStart(limit: BucketedCounterLimit, atMs: number): number {
  return atMs - (atMs % partMs(limit))
}

/** How many parts have begun since the newest stored one; at B + 1 nothing stored counts any more. */
function partsSince(limit: BucketedCounterLimit, state: BucketsState, nowMs: number): number {
  if (isForgotten(limit, state, nowMs)) return limit.buckets + 1
  const startMs = partStart(limit, effectiveMs(limit, state, nowMs))
  return Math.min(limit.buckets + 1, (startMs - state.startMs) / partMs(limit))
}

/** How many of the stored parts count, from the newest on. */
function liveParts(limit: BucketedCounterLimit, state: BucketsState, nowMs: number): number {
  return limit.buckets + 1 - partsSince(limit, state, nowMs)
}

function usedAt(limit: BucketedCounterLimit, state: BucketsState, nowMs: number): number {
  const live = liveParts(limit, state, nowMs)
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
  const nowMs = toMs(nowUs)
  const live = liveParts(limit, state, nowMs)
  let used = 0
  let newest = -1
  for (let age = 0; age < live; age++) {
    const count = state.counts[age] ?? 0
    if (count > 0 && newest < 0) newest = age
    used += count
  }
  const left = limit.limit - used - units
  if (left >= 0 && mayCharge && units > 0) {
    out.chargedAtUs = Math.max(charge(limit, state, units, nowMs) * MS_US, nowUs)
    out.waitUs = 0
    out.remaining = left
    out.resetAfterUs = leavesAtMs(limit, state, 0) * MS_US - nowUs
    return
  }
  out.waitUs = left >= 0 ? 0 : fitsAt(limit, state, live, units, -left) * MS_US - nowUs
  out.remaining = Math.max(0, limit.limit - used)
  out.resetAfterUs = newest < 0 ? 0 : leavesAtMs(limit, state, newest) * MS_US - nowUs
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
  return leavesAtMs(limit, state, age)
}

function leavesAtMs(limit: BucketedCounterLimit, state: BucketsState, age: number): number {
  return state.startMs + (limit.buckets + 1 - age) * partMs(limit)
}

/** When what is charged now stops counting. */
function newestLeavesMs(limit: BucketedCounterLimit, nowMs: number): number {
  return partStart(limit, nowMs) + (limit.buckets + 1) * partMs(limit)
}

/** Writes the charge down. Returns the time it counts at. */
function charge(limit: BucketedCounterLimit, state: BucketsState, cost: number, nowMs: number): number {
  const atMs = effectiveMs(limit, state, nowMs)
  roll(limit, state, nowMs)
  state.counts[0] = (state.counts[0] ?? 0) + cost
  return atMs
}

function roll(limit: BucketedCounterLimit, state: BucketsState, nowMs: number): void {
  const parts = partsSince(limit, state, nowMs)
  const startMs = partStart(limit, effectiveMs(limit, state, nowMs))
  if (parts > limit.buckets) state.counts.length = 0
  else for (let part = 0; part < parts; part++) state.counts.unshift(0)
  state.counts.length = Math.min(state.counts.length, limit.buckets + 1)
  state.startMs = startMs
}

/** Charges units that were used already, as far as there is room. */
function chargeBeyond(limit: BucketedCounterLimit, state: BucketsState, units: number, nowMs: number): void {
  const charged = Math.min(units, roomBeyond(limit, usedAt(limit, state, nowMs)))
  if (charged > 0) charge(limit, state, charged, nowMs)
}

/** Takes back up to `units` from the part of `chargedAtUs`, or from the oldest without it. Returns the units. */
function refund(
  limit: BucketedCounterLimit,
  state: BucketsState,
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
  const live = liveParts(limit, state, nowMs)
  const chargedAge =
    chargedAtUs === null ? null : (state.startMs - partStart(limit, toMs(chargedAtUs))) / partMs(limit)
  let left = units
  for (let age = live - 1; age >= 0; age--) {
    if (chargedAge !== null && chargedAge !== age) continue
    const back = Math.min(left, state.counts[age] ?? 0)
    if (back > 0) state.counts[age] = (state.counts[age] as number) - back
    left -= back
  }
  if (left < units) roll(limit, state, nowMs)
  return units - left
}

function reset(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): void {
  state.resetUs = Math.max(state.resetUs, effectiveMs(limit, state, toMs(nowUs)) * MS_US)
  state.startMs = 0
  state.counts.length = 0
}

/** As if all of it had been admitted in the newest part that counts; rounded up to whole parts. */
function usedUp(limit: BucketedCounterLimit, untilUs: number, nowUs: number): BucketsState {
  const part = partMs(limit)
  const startMs = (Math.ceil(untilUs / MS_US / part) - limit.buckets - 1) * part
  return { startMs: Math.min(startMs, partStart(limit, toMs(nowUs))), counts: [limit.limit], resetUs: 0 }
}

/** Two windows cover the B + 1 parts for any B; catching up with a clock that stepped back comes on top. */
function keepForUs(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): number {
  return Math.max(0, state.startMs * MS_US - nowUs) + 2 * limit.windowUs
}

export const slidingWindowBucketsAlgorithm = /* @__PURE__ */ defineAlgorithm<
  BucketedCounterLimit,
  BucketsState
>(() => ({
  name: 'sliding-window-buckets',
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
      const lengthUs = partMs(limit) * MS_US
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
  isUncharged: (limit, state, nowUs) => usedAt(limit, state, toMs(nowUs)) === 0,
  rows: () => new ObjectRows(empty),
  wire: {
    kind: 'parts',
    numbers: limit => [limit.limit, limit.windowUs / MS_US, limit.buckets],
    mostLeft: limit => limit.limit,
    charged(limit, left, nowUs, out) {
      out.waitUs = 0
      out.remaining = left
      out.resetAfterUs = newestLeavesMs(limit, toMs(nowUs)) * MS_US - nowUs
      out.chargedAtUs = nowUs
    },
    decided(limit, [startMs, counts], units, nowUs, isCharged, out) {
      const stored = String(counts) === '' ? [] : String(counts).split(',').map(Number)
      decide(limit, { startMs: Number(startMs), counts: stored, resetUs: 0 }, units, nowUs, isCharged, out)
    },
  },
  toJSON() {
    return this.name
  },
}))
