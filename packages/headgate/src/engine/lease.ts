/**
 * Leases: a process takes n units of a hot key at once and spends them by itself. They are charged when they are taken,
 * so what is spent in any interval of length τ was granted in one of length τ + TTL. Each limit is made stricter by
 * just that much, for every request:
 *
 *   log            counts grants for window + TTL: what is spent in any window ≤ what is granted in window + TTL ≤ limit
 *   buckets        counts as many more parts as the TTL touches: the same
 *   counter        stays as it is; a lease ends with the aligned window it was granted in, and the bound is one of those
 *   token bucket   capacity − rate × TTL: spent in τ ≤ (capacity − rate × TTL) + rate × (τ + TTL) = capacity + rate × τ
 *
 * A grant is an ordinary charge on such a limit, and giving it back a refund. But a bucket goes on refilling while units
 * are out, as if they had been spent. So what comes back is fewer by what was refilled since it was taken
 * (`Refund.heldSinceUs`). Otherwise what is out beyond what is missing could grow from hand to hand, one process taking
 * just before another gives back, past the rate × TTL that the stricter capacity provides for.
 */
import type { Limit } from './limit.js'

/** How a limit may be leased. */
export interface Lease {
  /** The most units taken at once. */
  readonly max: number
  readonly ttlUs: number
}

/** The longest lease, as a part of the window or of the time a bucket takes to fill. */
export const LEASE_PARTS = 20

/** Returns the longest time for which units of this limit may be leased, in microseconds; 0 if they may not be. */
export function longestLeaseUs(limit: Limit): number {
  // Places of requests in flight cannot be taken in advance.
  if (limit.algorithm === 'concurrency') return 0
  if (limit.algorithm !== 'token-bucket') return Math.floor(limit.windowUs / LEASE_PARTS)
  return Math.floor((limit.limit / LEASE_PARTS / limit.refillPerSecond) * 1e6)
}

/** Returns the limit whose grants, spent within the lease's time, keep what `limit` promises. */
export function leasedLimit<L extends Limit>(limit: L, lease: Lease): L
export function leasedLimit(limit: Limit, lease: Lease): Limit {
  switch (limit.algorithm) {
    case 'sliding-window-log':
      return { ...limit, lease, windowUs: limit.windowUs + lease.ttlUs }
    case 'sliding-window-counter':
      return { ...limit, lease }
    case 'sliding-window-buckets': {
      // Parts keep their length, so that what is stored keeps its meaning.
      const partUs = Math.ceil(limit.windowUs / limit.buckets)
      const buckets = limit.buckets + Math.ceil(lease.ttlUs / partUs)
      return { ...limit, lease, buckets, windowUs: buckets * partUs }
    }
    case 'concurrency':
      return limit
    case 'token-bucket': {
      const units = limit.limit - Math.ceil((limit.refillPerSecond * lease.ttlUs) / 1e6)
      const { quota } = limit
      const told = quota.limit === limit.limit ? { ...quota, limit: units } : quota
      const burst = told.burst === limit.limit ? units : told.burst
      return { ...limit, lease, limit: units, quota: { ...told, burst } }
    }
  }
}

/** Returns how long a grant charged at `chargedAtUs` may be spent: a lease of the counter ends with its window. */
export function leaseForUs(limit: Limit, lease: Lease, chargedAtUs: number): number {
  if (limit.algorithm !== 'sliding-window-counter') return lease.ttlUs
  return Math.min(lease.ttlUs, limit.windowUs - (chargedAtUs % limit.windowUs))
}
