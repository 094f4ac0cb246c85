import type { Algorithm } from './algorithm.js'
import { concurrencyAlgorithm } from './concurrency.js'
import type { Limit } from './limit.js'
import { slidingWindowBucketsAlgorithm } from './sliding-window-buckets.js'
import { slidingWindowCounterAlgorithm } from './sliding-window-counter.js'
import { slidingWindowLogAlgorithm } from './sliding-window-log.js'
import { tokenBucketAlgorithm } from './token-bucket.js'

/** The algorithms by the name a limit carries. */
const ALGORITHMS = {
  'sliding-window-log': slidingWindowLogAlgorithm,
  'sliding-window-counter': slidingWindowCounterAlgorithm,
  'sliding-window-buckets': slidingWindowBucketsAlgorithm,
  'token-bucket': tokenBucketAlgorithm,
  concurrency: concurrencyAlgorithm,
} as const

/** A state of some algorithm; only that algorithm looks inside. */
export type State = ReturnType<(typeof ALGORITHMS)[Limit['algorithm']]['empty']>

/** Returns the algorithm of a limit. The two belong together, which the type of a table cannot express. */
export function algorithmOf(limit: Limit): Algorithm<Limit, State> {
  return ALGORITHMS[limit.algorithm] as unknown as Algorithm<Limit, State>
}
