/**
 * A store that charged a check at the time it reports need only say what that left: units, or micro-tokens of a
 * bucket. The rest follows from it, as `remaining` and `resetAfterUs` of the algorithm would return it.
 */
import type { Limit } from './limit.js'
import { newestLeavesUs } from './sliding-window-buckets.js'
import { windowStart } from './sliding-window-counter.js'
import { MICRO, refillUs } from './token-bucket.js'

/** Limits of which a charge can be described by what it left. */
export type LeftLimit = Exclude<Limit, { algorithm: 'concurrency' }>

/** Returns the most that a charge can leave. */
export function mostLeftOf(limit: LeftLimit): number {
  return limit.algorithm === 'token-bucket' ? limit.limit * MICRO : limit.limit
}

/** Returns the units that fit after a charge that left this much. */
export function remainingOf(limit: LeftLimit, left: number): number {
  return limit.algorithm === 'token-bucket' ? Math.floor(left / MICRO) : left
}

/** Returns how long after a charge at `nowUs` that left this much until everything is available again. */
export function resetAfterOf(limit: LeftLimit, left: number, nowUs: number): number {
  switch (limit.algorithm) {
    case 'sliding-window-counter':
      return windowStart(limit, nowUs) + 2 * limit.windowUs - nowUs
    case 'sliding-window-buckets':
      return newestLeavesUs(limit, nowUs) - nowUs
    case 'sliding-window-log':
      return limit.windowUs
    case 'token-bucket':
      return refillUs(limit.refillPerSecond, limit.limit * MICRO - left)
  }
}
