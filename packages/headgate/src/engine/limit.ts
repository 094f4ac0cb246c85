import type { Lease } from './lease.js'

/**
 * One rule of arithmetic: an algorithm and its numbers, validated when it was made (`policy/limits.ts`). `id` names
 * algorithm and window, never the quota, so that a changed quota keeps the usage.
 */
export type Limit = RateLimit | ConcurrencyLimit

/** A limit on how much is admitted over time. */
export type RateLimit = LogLimit | CounterLimit | BucketedCounterLimit | TokenBucketLimit

interface LimitBase {
  readonly id: string
  /** Units that can be used at once: the limit of a window, the capacity of a bucket. */
  readonly limit: number
  /** The quota that headers advertise; differs from `limit` if a burst consists of two limits. */
  readonly quota: Quota
  /** Whether it counts requests, whatever they cost. */
  readonly counts?: 'requests'
  /** How units may be taken in advance; the numbers already allow for it (`engine/lease.ts`). */
  readonly lease?: Lease
}

/** The numbers a client is told: `limit` per `windowUs`, of which at most `burst` at once. */
export interface Quota {
  readonly limit: number
  /** For a concurrency limit: the longest a place is held without being renewed. */
  readonly windowUs: number
  readonly burst: number | null
  /** The thing counted, if not units in a window. */
  readonly unit?: 'concurrent-requests'
}

export interface LogLimit extends LimitBase {
  readonly algorithm: 'sliding-window-log'
  readonly windowUs: number
}

export interface CounterLimit extends LimitBase {
  readonly algorithm: 'sliding-window-counter'
  readonly windowUs: number
}

export interface BucketedCounterLimit extends LimitBase {
  readonly algorithm: 'sliding-window-buckets'
  readonly windowUs: number
  readonly buckets: number
}

export interface TokenBucketLimit extends LimitBase {
  readonly algorithm: 'token-bucket'
  readonly refillPerSecond: number
}

/** A limit on how many are in flight at once. */
export interface ConcurrencyLimit extends LimitBase {
  readonly algorithm: 'concurrency'
  /** A place that is not renewed is freed after this time. */
  readonly holdForUs: number
}

/** The wait of a request whose cost is above the capacity: no wait is long enough. */
export const NEVER = Number.POSITIVE_INFINITY

/** The largest limit or capacity. */
const MAX_UNITS = 2 ** 32 - 1

/** Returns the units that may still be charged beyond a limit of which `used` are. */
export function roomBeyond({ limit }: Limit, used: number): number {
  return Math.max(0, Math.min(2 * limit, MAX_UNITS) - used)
}

/** Whether two limits decide alike, whatever their names and advertised quotas. */
export function hasSameNumbers(one: Limit, other: Limit): boolean {
  if (one.algorithm !== other.algorithm || one.limit !== other.limit) return false
  if (one.algorithm === 'token-bucket') return one.refillPerSecond === (other as typeof one).refillPerSecond
  if (one.algorithm === 'concurrency') return one.holdForUs === (other as typeof one).holdForUs
  if (one.windowUs !== (other as typeof one).windowUs) return false
  return one.algorithm !== 'sliding-window-buckets' || one.buckets === (other as typeof one).buckets
}
