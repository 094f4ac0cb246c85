import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { caseTable } from './case-table.js'

/** Rows: at ms, cost, allowed, remaining, retry after ms, reset after ms. */
export const slidingWindowCounterCases = caseTable(
  'sliding-window counter: 10 in 10 s',
  slidingWindowCounter({ limit: 10, window: '10s' }),
  [
    [0, 8, true, 2, 0, 20_000, 'the units fade over the window after this one'],
    [5_000, 3, false, 2, 5_001, 15_000, 'less than 8 of the 8 must count, right after this window has ended'],
    [10_000, 3, false, 2, 1, 10_000, 'at the boundary the previous window still counts whole'],
    [10_001, 3, true, 0, 0, 19_999, 'a millisecond later it counts 7, rounded down, and 3 fit'],
    [11_250, 1, false, 0, 1, 18_750, 'exactly 7 count, and none is left'],
    [11_251, 1, true, 0, 0, 18_749, 'less than 7 count: 6, and the 4 of this window'],
    [15_000, 1, true, 1, 0, 15_000, 'half of the previous window counts: 4 and the 5 of this one'],
    [15_000, 11, false, 1, null, 15_000, 'a cost above the limit never fits'],
    [20_000, 5, true, 0, 0, 20_000, 'the 5 of the last window and 5 more are 10'],
    [40_000, 1, true, 9, 0, 20_000, 'two windows later nothing counts'],
  ],
)
