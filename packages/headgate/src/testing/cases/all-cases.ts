import { banCases } from './ban.js'
import type { CaseTable } from './case-table.js'
import { concurrencyCases } from './concurrency.js'
import { quotaCases } from './quota.js'
import { slidingWindowBucketsCases } from './sliding-window-buckets.js'
import { slidingWindowCounterCases } from './sliding-window-counter.js'
import { slidingWindowLogCases } from './sliding-window-log.js'
import { tokenBucketCases } from './token-bucket.js'

/** The histories that every implementation of the algorithms must answer alike. */
export const caseTables: readonly CaseTable[] = [
  slidingWindowLogCases,
  slidingWindowCounterCases,
  slidingWindowBucketsCases,
  tokenBucketCases,
  quotaCases,
  concurrencyCases,
  banCases,
]
