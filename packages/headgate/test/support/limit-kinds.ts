/** Which algorithm a limit has: tests that check the promises of one have to know. */
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { type ConcurrencyLimit, concurrencyAlgorithm } from '../../src/algorithms/concurrency.ts'
import {
  type BucketedCounterLimit,
  slidingWindowBucketsAlgorithm,
} from '../../src/algorithms/sliding-window-buckets.ts'
import {
  type CounterLimit,
  slidingWindowCounterAlgorithm,
} from '../../src/algorithms/sliding-window-counter.ts'
import { type LogLimit, slidingWindowLogAlgorithm } from '../../src/algorithms/sliding-window-log.ts'
import { type TokenBucketLimit, tokenBucketAlgorithm } from '../../src/algorithms/token-bucket.ts'
import type { WindowLimit } from '../../src/algorithms/window.ts'

export function isLog(limit: Limit): limit is LogLimit {
  return limit.algorithm === slidingWindowLogAlgorithm
}

export function isCounter(limit: Limit): limit is CounterLimit {
  return limit.algorithm === slidingWindowCounterAlgorithm
}

export function isBuckets(limit: Limit): limit is BucketedCounterLimit {
  return limit.algorithm === slidingWindowBucketsAlgorithm
}

export function isTokenBucket(limit: Limit): limit is TokenBucketLimit {
  return limit.algorithm === tokenBucketAlgorithm
}

export function isConcurrency(limit: Limit): limit is ConcurrencyLimit {
  return limit.algorithm === concurrencyAlgorithm
}

export function isWindow(limit: Limit): limit is WindowLimit {
  return isLog(limit) || isCounter(limit) || isBuckets(limit)
}
