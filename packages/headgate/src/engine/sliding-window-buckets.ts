/**
 * Sliding-window counter in sub-windows, the conservative one: the window is cut into B parts and the oldest of the
 * B + 1 parts it touches counts whole.
 *
 *   used(now) = Σ counts of the current part and the B before it          admit when used + cost ≤ limit
 *
 * Invariant: at most `limit` in any window, exactly; the price is an effective window of up to window × (1 + 1/B).
 */
import type { Admission, Algorithm } from './algorithm.js'
import { type BucketedCounterLimit, NEVER, roomBeyond } from './limit.js'

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

function usedAt(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): number {
  const live = limit.buckets + 1 - partsSince(limit, state, nowUs)
  let used = 0
  for (let age = 0; age < live; age++) used += state.counts[age] ?? 0
  return used
}

/** How long until `cost` fits if nobody else asks; 0 when it fits now. */
function waitUs(limit: BucketedCounterLimit, state: BucketsState, cost: number, nowUs: number): number {
  if (cost > limit.limit) return NEVER
  let excess = usedAt(limit, state, nowUs) + cost - limit.limit
  if (excess <= 0) return 0
  let age = limit.buckets - partsSince(limit, state, nowUs)
  for (; age > 0; age--) {
    excess -= state.counts[age] ?? 0
    if (excess <= 0) break
  }
  return leavesAtUs(limit, state, age) - nowUs
}

function leavesAtUs(limit: BucketedCounterLimit, state: BucketsState, age: number): number {
  return state.startUs + (limit.buckets + 1 - age) * partUs(limit)
}

/** When what is charged now stops counting. */
export function newestLeavesUs(limit: BucketedCounterLimit, nowUs: number): number {
  return partStart(limit, nowUs) + (limit.buckets + 1) * partUs(limit)
}

/** Writes the charge down; only for a cost that fits. Returns the time it counts at. */
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

function remaining(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): number {
  return Math.max(0, limit.limit - usedAt(limit, state, nowUs))
}

/** How long until no counted part holds any unit. */
function resetAfterUs(limit: BucketedCounterLimit, state: BucketsState, nowUs: number): number {
  const live = limit.buckets + 1 - partsSince(limit, state, nowUs)
  for (let age = 0; age < live; age++) {
    if ((state.counts[age] ?? 0) > 0) return leavesAtUs(limit, state, age) - nowUs
  }
  return 0
}

function take(
  limit: BucketedCounterLimit,
  state: BucketsState,
  cost: number,
  nowUs: number,
  into: Admission,
): boolean {
  if (state.startUs > nowUs) return false
  const left = limit.limit - usedAt(limit, state, nowUs) - cost
  if (left < 0) return false
  charge(limit, state, cost, nowUs)
  into.remaining = left
  into.resetAfterUs = leavesAtUs(limit, state, 0) - nowUs
  into.nowUs = nowUs
  return true
}

function chargeBeyond(
  limit: BucketedCounterLimit,
  state: BucketsState,
  units: number,
  nowUs: number,
): number {
  const charged = Math.min(units, roomBeyond(limit, usedAt(limit, state, nowUs)))
  if (charged > 0) charge(limit, state, charged, nowUs)
  return charged
}

/** Takes back up to `units` from the part of `chargedAtUs`, or from the oldest without it. Returns the units. */
function refund(
  limit: BucketedCounterLimit,
  state: BucketsState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
): number {
  if (chargedAtUs !== null && chargedAtUs <= state.resetUs) return 0
  const live = limit.buckets + 1 - partsSince(limit, state, nowUs)
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
  empty,
  waitUs,
  charge,
  remaining,
  resetAfterUs,
  take,
  chargeBeyond,
  refund,
  reset,
  usedUp,
  keepForUs,
}
