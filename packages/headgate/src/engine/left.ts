/**
 * A store that charged a check at the time it says need not say more than what that left: units, or micro-tokens of a
 * bucket. What callers are told follows from it, as `remaining` and `resetAfterUs` of the algorithm would say.
 */
import type { Limit } from './limit.js'
import { newestLeavesUs } from './sliding-window-buckets.js'
import { windowStart } from './sliding-window-counter.js'
import { MICRO, refillUs } from './token-bucket.js'

/** Limits of which a charge can be told by what it left. */
export type LeftLimit = Exclude<Limit, { algorithm: 'concurrency' }>

/** Units that fit after a charge that left so much. */
export function remainingOf(limit: LeftLimit, left: number): number {
  return limit.algorithm === 'token-bucket' ? Math.floor(left / MICRO) : left
}

/** How long after a charge at `nowUs` that left so much until everything is available again. */
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
