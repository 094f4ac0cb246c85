import { tokenBucket } from '../../algorithms/token-bucket.js'
import { caseTable } from './case-table.js'

/** Rows: at ms, cost, allowed, remaining, retry after ms, reset after ms. */
export const tokenBucketCases = caseTable(
  'token bucket: 5 tokens, one every 2 s',
  tokenBucket({ capacity: 5, refillPerSecond: 0.5 }),
  [
    [0, 5, true, 0, 0, 10_000, 'a full bucket can be emptied at once'],
    [1_000, 1, false, 0, 1_000, 9_000, 'half a token is not a token'],
    [1_999, 1, false, 0, 1, 8_001, 'nor is one a millisecond short'],
    [2_000, 1, true, 0, 0, 10_000, 'a whole one is'],
    [7_000, 2, true, 0, 0, 9_000, 'the half that was left over stays'],
    [8_000, 1, true, 0, 0, 10_000, 'and makes a token with the next half'],
    [8_000, 6, false, 0, null, 10_000, 'a cost above the capacity never fits'],
    [60_000, 0, true, 5, 0, 0, 'a bucket fills to its capacity and no further'],
  ],
)
