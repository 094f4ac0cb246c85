import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { caseTable } from './case-table.js'

/** Rows: at ms, cost, allowed, remaining, retry after ms, reset after ms. */
export const slidingWindowBucketsCases = caseTable(
  'sliding-window counter: 10 in 10 s, in 5 parts',
  slidingWindowCounter({ limit: 10, window: '10s', buckets: 5 }),
  [
    [0, 6, true, 4, 0, 12_000, 'the first part counts until the sixth part ends'],
    [3_000, 4, true, 0, 0, 11_000, 'the second part began at 2 s'],
    [10_000, 1, false, 0, 2_000, 4_000, 'the oldest part the window touches counts whole'],
    [11_999, 1, false, 0, 1, 2_001, 'until its last millisecond'],
    [12_000, 1, true, 5, 0, 12_000, 'the 6 of the first part are gone'],
    [13_999, 7, false, 5, 1, 10_001, 'a cost of 7 waits for the second part'],
    [14_000, 9, true, 0, 0, 12_000, 'which has left'],
    [14_000, 11, false, 0, null, 12_000, 'a cost above the limit never fits'],
    [60_000, 10, true, 0, 0, 12_000, 'after a long silence the whole limit is there'],
  ],
)
