import type { Limit } from '../../src/algorithms/algorithm.js'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import type { Check } from '../../src/check/check.js'
import type { Question } from '../../src/store/ask-store.js'

export const LOG = slidingWindowLog({ limit: 1_000_000, window: '1h' })
export const BUCKET = tokenBucket({ capacity: 1_000, refillPerSecond: 0.001 })
export const COUNTER = slidingWindowCounter({ limit: 1_000_000, window: '1h' })
export const BUCKETS = slidingWindowCounter({ limit: 1_000_000, window: '1h', buckets: 4 })

export function check(subject: string, limit: Limit = LOG, cost = 1): Check {
  return { subject, scope: 'global', name: `test.${limit.id}`, limit, cost }
}

/** A question in which all of these checks are charged, or none. */
export function all(...checks: readonly Check[]): Question {
  return { alternatives: [checks], shadow: [] }
}

/** A question for one unit of a large log, whose charges can be counted on the server afterwards. */
export function one(subject: string): Question {
  return all(check(subject))
}
