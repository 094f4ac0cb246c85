import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { caseTable } from './case-table.js'

/** Rows: at ms, cost, allowed, remaining, retry after ms, reset after ms. */
export const slidingWindowCounterCases = caseTable(
  'sliding-window counter: 10 in 10 s',
  slidingWindowCounter({ limit: 10, window: '10s' }),
  [
    [0, 8, true, 2, 0, 20_000, 'the units fade over the window after this one'],
    [5_000, 3, false, 2, 6_250, 15_000, 'an eighth of the 8 must fade, after this window has ended'],
    [10_000, 3, false, 2, 1_250, 10_000, 'at the boundary the previous window still counts whole'],
    [11_249, 3, false, 2, 1, 8_751, 'a millisecond early the estimate is rounded up to 8'],
    [11_250, 3, true, 0, 0, 18_750, 'now 7 of the 8 count, and 3 fit'],
    [15_000, 1, true, 2, 0, 15_000, 'half of the previous window counts: 4 and the 4 of this one'],
    [15_000, 11, false, 2, null, 15_000, 'a cost above the limit never fits'],
    [20_000, 6, true, 0, 0, 20_000, 'the 4 of the last window and 6 more are 10'],
    [40_000, 1, true, 9, 0, 20_000, 'two windows later nothing counts'],
  ],
)
