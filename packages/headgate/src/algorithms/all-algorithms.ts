/**
 * All algorithms, for what is known only by name: a policy file, and a limit that came from another thread. Whoever
 * makes limits in code imports the ones it uses, so that a bundle holds no other.
 */
import type { Algorithm } from './algorithm.js'
import { banAlgorithm } from './ban.js'
import { type ConcurrencyOptions, concurrencyAlgorithm } from './concurrency.js'
import { type QuotaOptions, quotaAlgorithm } from './quota.js'
import { slidingWindowBucketsAlgorithm } from './sliding-window-buckets.js'
import { type CounterOptions, slidingWindowCounterAlgorithm } from './sliding-window-counter.js'
import { slidingWindowLogAlgorithm } from './sliding-window-log.js'
import { type TokenBucketOptions, tokenBucketAlgorithm } from './token-bucket.js'
import type { WindowOptions } from './window.js'

function byName(...algorithms: readonly Algorithm[]): ReadonlyMap<string, Algorithm> {
  return new Map(algorithms.map(algorithm => [algorithm.name, algorithm]))
}

/** Those a policy file may name. A counter with `buckets` is a limit of sub-windows. */
export const fileAlgorithms = byName(
  slidingWindowLogAlgorithm,
  slidingWindowCounterAlgorithm,
  tokenBucketAlgorithm,
  quotaAlgorithm,
  concurrencyAlgorithm,
)

/** A limit as it is written in a policy file. */
export type WrittenLimit =
  | ({ readonly algorithm: 'sliding-window-log' } & WindowOptions)
  | ({ readonly algorithm: 'sliding-window-counter' } & CounterOptions)
  | ({ readonly algorithm: 'token-bucket' } & TokenBucketOptions)
  | ({ readonly algorithm: 'quota' } & QuotaOptions)
  | ({ readonly algorithm: 'concurrency' } & ConcurrencyOptions)

/** Those a limit may have. */
export const allAlgorithms = byName(...fileAlgorithms.values(), slidingWindowBucketsAlgorithm, banAlgorithm)
