import type { Lease } from './lease.js'

/**
 * One rule of arithmetic: an algorithm and its numbers, validated when it was made (`policy/limits.ts`).
 * `id` says algorithm and window, never the quota, so that a changed quota keeps what was used.
 */
export type Limit = LogLimit | CounterLimit | BucketedCounterLimit | TokenBucketLimit

interface LimitBase {
  readonly id: string
  /** Units that can be used at once: the limit of a window, the capacity of a bucket. */
  readonly limit: number
  /** What headers advertise; differs from `limit` where a burst is made of two limits. */
  readonly quota: Quota
  /** How units may be taken in advance; the numbers allow for it already (`engine/lease.ts`). */
  readonly lease?: Lease
}

/** The numbers a client is told: `limit` per `windowUs`, of which at most `burst` at once. */
export interface Quota {
  readonly limit: number
  readonly windowUs: number
  readonly burst: number | null
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

/** The wait of a request that no amount of waiting lets in: its cost is above the capacity. */
export const NEVER = Number.POSITIVE_INFINITY

/** Whether two limits decide alike, whatever they are called and advertised as. */
export function hasSameNumbers(one: Limit, other: Limit): boolean {
  if (one.algorithm !== other.algorithm || one.limit !== other.limit) return false
  if (one.algorithm === 'token-bucket') return one.refillPerSecond === (other as typeof one).refillPerSecond
  if (one.windowUs !== (other as typeof one).windowUs) return false
  return one.algorithm !== 'sliding-window-buckets' || one.buckets === (other as typeof one).buckets
}
