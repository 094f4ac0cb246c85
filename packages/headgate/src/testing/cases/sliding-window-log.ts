import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { caseTable } from './case-table.js'

/** Rows: at ms, cost, allowed, remaining, retry after ms, reset after ms. */
export const slidingWindowLogCases = caseTable(
  'sliding-window log: 3 in 10 s',
  slidingWindowLog({ limit: 3, window: '10s' }),
  [
    [0, 1, true, 2, 0, 10_000, 'an empty log has room for everything'],
    [0, 1, true, 1, 0, 10_000, 'two requests in one microsecond are two entries'],
    [4_000, 1, true, 0, 0, 10_000, 'the third fills the log'],
    [5_000, 1, false, 0, 5_000, 9_000, 'the oldest entry leaves at 10 s'],
    [9_999, 1, false, 0, 1, 4_001, 'one millisecond before it leaves there is no room'],
    [10_000, 1, true, 1, 0, 10_000, 'both entries of 0 s have left exactly one window later'],
    [10_000, 2, false, 1, 4_000, 10_000, 'a cost of 2 waits for the entry of 4 s'],
    [10_000, 4, false, 1, null, 10_000, 'a cost above the limit never fits'],
    [14_000, 2, true, 0, 0, 10_000, 'and fits when it has left'],
    [20_000, 0, true, 1, 0, 4_000, 'a cost of 0 is charged nothing'],
    [90_000, 3, true, 0, 0, 10_000, 'after a long silence the whole limit is there'],
  ],
)
