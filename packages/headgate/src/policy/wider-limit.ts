/** Limits that several callers share, derived from the limits of one: the networks of IPv6, made-up subjects of an address. */
import type { Limit } from '../algorithms/algorithm.js'
import { scaleLimit } from './change-numbers.js'
import { isBan, type PolicyLimit } from './policies.js'

/** Stores identify a limit by its object, so each scaled limit is made once. */
const widened = new WeakMap<Limit, Map<number, Limit>>()

/** Returns the limit with `times` its units. It is never leased, because a lease belongs to one caller. */
export function widerLimit(limit: Limit, times: number): Limit {
  let byTimes = widened.get(limit)
  if (byTimes === undefined) {
    byTimes = new Map()
    widened.set(limit, byTimes)
  }
  let wider = byTimes.get(times)
  if (wider === undefined) {
    const { lease: _, ...scaled } = scaleLimit(limit, times)
    wider = Object.freeze(scaled)
    byTimes.set(times, wider)
  }
  return wider
}

/**
 * Returns the limits of a policy with `times` their units, under names of their own: what a subject pays for others must
 * not be taken from what it has for itself.
 */
export function sharedLimits(limits: readonly PolicyLimit[], times: number): PolicyLimit[] {
  return limits
    .filter(isShared)
    .map(({ name, limit }) => ({ name: `${name}/shared`, limit: widerLimit(limit, times) }))
}

/** Nobody is banned for what others do. */
export function isShared({ limit }: { readonly limit: Limit }): boolean {
  return !isBan(limit)
}
