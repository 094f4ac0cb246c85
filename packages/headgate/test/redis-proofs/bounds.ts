import type { Limit } from '../../src/algorithms/algorithm.ts'
import { isBuckets, isCounter, isLog, isTokenBucket } from '../support/limit-kinds.ts'

/** A charge as the store recorded it. */
export interface Admission {
  readonly atUs: number
  readonly cost: number
}

/**
 * The worst the history did to the limit's promise, and the promise: over-admitted if `worst` is above `bound`. The
 * history must be in order of time.
 */
export interface BoundCheck {
  readonly promise: string
  readonly worst: number
  readonly bound: number
}

/** Checks a history of admissions against everything its limit promises. */
export function checkBounds(limit: Limit, history: readonly Admission[]): BoundCheck[] {
  if (isLog(limit) || isBuckets(limit)) {
    return [{ promise: 'any window', worst: mostInAnyWindow(history, limit.windowUs), bound: limit.limit }]
  }
  if (isCounter(limit)) {
    return [
      { promise: 'aligned window', worst: mostInAlignedWindow(history, limit.windowUs), bound: limit.limit },
      { promise: 'any window', worst: mostInAnyWindow(history, limit.windowUs), bound: 2 * limit.limit },
    ]
  }
  if (!isTokenBucket(limit)) throw new Error(`${limit.algorithm.name} promises nothing about time`)
  return [
    {
      promise: 'capacity + rate × time',
      worst: mostAboveRate(history, limit.refillPerSecond),
      bound: limit.limit,
    },
  ]
}

/** Returns the greatest cost in any half-open interval as long as the window. */
export function mostInAnyWindow(history: readonly Admission[], windowUs: number): number {
  let most = 0
  let inside = 0
  let oldest = 0
  for (const { atUs, cost } of history) {
    inside += cost
    for (; (history[oldest] as Admission).atUs <= atUs - windowUs; oldest++) {
      inside -= (history[oldest] as Admission).cost
    }
    most = Math.max(most, inside)
  }
  return most
}

function mostInAlignedWindow(history: readonly Admission[], windowUs: number): number {
  const totals = new Map<number, number>()
  for (const { atUs, cost } of history) {
    const start = atUs - (atUs % windowUs)
    totals.set(start, (totals.get(start) ?? 0) + cost)
  }
  return Math.max(0, ...totals.values())
}

/** Returns the greatest "cost in an interval less what is refilled in it", over all intervals. */
function mostAboveRate(history: readonly Admission[], refillPerSecond: number): number {
  const firstUs = history[0]?.atUs ?? 0
  let most = 0
  let total = 0
  let least = Number.POSITIVE_INFINITY
  for (const { atUs, cost } of history) {
    // In micro-tokens, which are whole numbers for whole rates: no rounding hides an excess.
    const refilled = (atUs - firstUs) * refillPerSecond
    least = Math.min(least, total * 1e6 - refilled)
    total += cost
    most = Math.max(most, total * 1e6 - refilled - least)
  }
  return most / 1e6
}
