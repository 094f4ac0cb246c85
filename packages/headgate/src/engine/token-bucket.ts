/**
 * Token bucket: a bucket of `limit` tokens refilled at a steady rate; a request takes its cost or waits for it.
 *
 *   tokens(now) = min(capacity, tokens + elapsed × rate)          admit when tokens ≥ cost
 *
 * The state is what is missing, not what is left, so a changed capacity keeps what was used. It is counted in
 * micro-tokens: one token a second is exactly one micro-token a microsecond. The refill is rounded down, and only an
 * admission writes, so less than one micro-token in a million is ever lost to rounding.
 *
 * Invariant: the cost admitted in any τ seconds is at most capacity + rate × τ.
 */
import type { Admission, Algorithm } from './algorithm.js'
import { NEVER, type TokenBucketLimit } from './limit.js'

/** Micro-tokens missing from a full bucket at `lastRefillUs`; when it was last reset, or 0. */
export interface BucketState {
  missing: number
  lastRefillUs: number
  resetUs: number
}

export const MICRO = 1_000_000

function empty(): BucketState {
  return { missing: 0, lastRefillUs: 0, resetUs: 0 }
}

/**
 * A clock that stepped back is waited for, unless the wait for one token would then be longer than a whole bucket
 * takes to fill: such a state counts as forgotten.
 */
function isForgotten(limit: TokenBucketLimit, state: BucketState, nowUs: number): boolean {
  // Mostly the clock has not stepped back, and there is nothing to divide.
  if (state.lastRefillUs <= nowUs) return false
  return state.lastRefillUs - nowUs > ((limit.limit - 1) * MICRO) / limit.refillPerSecond
}

/** The micro-tokens missing when last written; a bucket made smaller since then is empty, not in debt. */
function storedMissing(limit: TokenBucketLimit, state: BucketState): number {
  return Math.min(state.missing, limit.limit * MICRO)
}

function missingAt(limit: TokenBucketLimit, state: BucketState, nowUs: number): number {
  if (isForgotten(limit, state, nowUs)) return 0
  const elapsedUs = Math.max(0, nowUs - state.lastRefillUs)
  return Math.max(0, storedMissing(limit, state) - Math.floor(elapsedUs * limit.refillPerSecond))
}

/** Least whole number of microseconds in which `micro` micro-tokens are refilled. */
export function refillUs(refillPerSecond: number, micro: number): number {
  let elapsedUs = Math.ceil(micro / refillPerSecond)
  // No whole number is exact any more, and one more would not make a difference.
  if (!(elapsedUs < EXACT_BELOW_US)) return elapsedUs
  // The quotient is rounded, by a microsecond or two; the product is what decides.
  while (Math.floor(elapsedUs * refillPerSecond) < micro) elapsedUs++
  while (elapsedUs > 0 && Math.floor((elapsedUs - 1) * refillPerSecond) >= micro) elapsedUs--
  return elapsedUs
}

const EXACT_BELOW_US = 2 ** 52

/** How long until `cost` fits if nobody else asks; 0 when it fits now. */
function waitUs(limit: TokenBucketLimit, state: BucketState, cost: number, nowUs: number): number {
  if (cost > limit.limit) return NEVER
  const room = (limit.limit - cost) * MICRO
  if (missingAt(limit, state, nowUs) <= room) return 0
  return state.lastRefillUs + refillUs(limit.refillPerSecond, storedMissing(limit, state) - room) - nowUs
}

/** Time never runs backwards for a key. */
function effectiveNow(limit: TokenBucketLimit, state: BucketState, nowUs: number): number {
  return isForgotten(limit, state, nowUs) ? nowUs : Math.max(nowUs, state.lastRefillUs)
}

/** Takes the tokens; only for a cost that fits. Returns the time the charge counts at. */
function charge(limit: TokenBucketLimit, state: BucketState, cost: number, nowUs: number): number {
  const atUs = effectiveNow(limit, state, nowUs)
  state.missing = missingAt(limit, state, nowUs) + cost * MICRO
  state.lastRefillUs = atUs
  return atUs
}

function remaining(limit: TokenBucketLimit, state: BucketState, nowUs: number): number {
  return limit.limit - Math.ceil(missingAt(limit, state, nowUs) / MICRO)
}

/** How long until the bucket is full again. */
function resetAfterUs(limit: TokenBucketLimit, state: BucketState, nowUs: number): number {
  if (missingAt(limit, state, nowUs) === 0) return 0
  return state.lastRefillUs + refillUs(limit.refillPerSecond, storedMissing(limit, state)) - nowUs
}

function take(
  limit: TokenBucketLimit,
  state: BucketState,
  cost: number,
  nowUs: number,
  into: Admission,
): boolean {
  if (state.lastRefillUs > nowUs) return false
  const missing = missingAt(limit, state, nowUs) + cost * MICRO
  if (missing > limit.limit * MICRO) return false
  state.missing = missing
  state.lastRefillUs = nowUs
  into.remaining = limit.limit - Math.ceil(missing / MICRO)
  into.resetAfterUs = refillUs(limit.refillPerSecond, missing)
  into.nowUs = nowUs
  return true
}

/**
 * A debt is a bucket that begins to fill later: empty, and last refilled when the debt will have been paid. It is less
 * than a whole bucket, the furthest ahead that this time may lie.
 */
function chargeBeyond(limit: TokenBucketLimit, state: BucketState, units: number, nowUs: number): number {
  if (units === 0 || limit.limit === 0) return 0
  const atUs = effectiveNow(limit, state, nowUs)
  const owedUs = atUs - nowUs
  const missing = missingAt(limit, state, nowUs) + units * MICRO
  const capacity = limit.limit * MICRO
  state.missing = Math.min(missing, capacity)
  state.lastRefillUs = atUs
  if (missing > capacity) {
    const mostUs = Math.floor(((limit.limit - 1) * MICRO) / limit.refillPerSecond)
    state.lastRefillUs =
      nowUs + Math.min(mostUs, owedUs + refillUs(limit.refillPerSecond, missing - capacity))
  }
  return units
}

/**
 * Credits up to `units` now, never above capacity; when they were taken does not matter, as long as the state of then
 * would still be kept. Returns the units. Those held in advance are fewer by what was refilled since: the bucket may
 * have been full and emptied again meanwhile. Nothing comes back to a bucket that misses more than this capacity: it was
 * written with other numbers, and what it misses beyond these would be forgotten.
 */
function refund(
  limit: TokenBucketLimit,
  state: BucketState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
  heldSinceUs = nowUs,
): number {
  if (chargedAtUs !== null && (chargedAtUs <= state.resetUs || isLongAgo(limit, chargedAtUs, nowUs))) return 0
  const missing = missingAt(limit, state, nowUs)
  if (missing > 0 && state.missing > limit.limit * MICRO) return 0
  const refilled = Math.max(0, nowUs - heldSinceUs) * limit.refillPerSecond
  const back = Math.min(Math.max(0, units - Math.ceil(refilled / MICRO)) * MICRO, missing)
  if (back === 0) return 0
  state.lastRefillUs = effectiveNow(limit, state, nowUs)
  state.missing = missing - back
  return Math.ceil(back / MICRO)
}

function reset(limit: TokenBucketLimit, state: BucketState, nowUs: number): void {
  state.resetUs = Math.max(state.resetUs, effectiveNow(limit, state, nowUs))
  state.missing = 0
  state.lastRefillUs = 0
}

/** As if it had been emptied so long before `untilUs` as it takes to fill. */
function usedUp(limit: TokenBucketLimit, untilUs: number, nowUs: number): BucketState {
  const missing = limit.limit * MICRO
  const emptiedUs = untilUs - refillUs(limit.refillPerSecond, missing)
  return { missing, lastRefillUs: Math.min(nowUs, emptiedUs), resetUs: 0 }
}

/** Twice the time an empty bucket takes to fill, in whole seconds. */
function twoFillsUs(limit: TokenBucketLimit): number {
  return 2 * Math.ceil(limit.limit / limit.refillPerSecond) * MICRO
}

/** Whether a charge is so old that all it was made of may have been forgotten since, a reset included. */
function isLongAgo(limit: TokenBucketLimit, chargedAtUs: number, nowUs: number): boolean {
  return nowUs - chargedAtUs >= twoFillsUs(limit)
}

/** Two fills; catching up with a back-step comes on top. */
function keepForUs(limit: TokenBucketLimit, state: BucketState, nowUs: number): number {
  return Math.max(0, state.lastRefillUs - nowUs) + twoFillsUs(limit)
}

export const tokenBucketAlgorithm: Algorithm<TokenBucketLimit, BucketState> = {
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
