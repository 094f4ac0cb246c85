import { ban } from '../../algorithms/ban.js'
import { caseTable } from './case-table.js'

/** Rows: at ms, cost, allowed, remaining, retry after ms, reset after ms, because, strikes before it. */
export const banCases = caseTable(
  'a ban: after 3 strikes within 10 s, for 1 min, then 5 min',
  ban({ after: 3, within: '10s', for: ['1m', '5m'] }),
  [
    [0, 1, true, 3, 0, 0, 'nobody is banned at first, and asking leaves nothing behind'],
    [0, 1, true, 1, 0, 310_000, 'two strikes are no ban', 2],
    [9_999, 1, true, 1, 0, 300_001, 'they count together for ten seconds'],
    [10_000, 1, true, 3, 0, 300_000, 'and then no more'],
    [20_000, 1, true, 1, 0, 310_000, 'so these are two again', 2],
    [29_999, 1, false, 0, 60_000, 60_000, 'the third within ten seconds is a ban of a minute', 1],
    [60_000, 5, false, 0, 29_999, 29_999, 'whatever a request costs, and however often it is denied', 3],
    [89_998, 1, false, 0, 1, 1, 'strikes during a ban extend nothing'],
    [89_999, 1, true, 3, 0, 310_000, 'it ends to the millisecond, and the ban is remembered'],
    [90_000, 1, false, 0, 300_000, 300_000, 'the second ban is longer', 3],
    [390_000, 1, true, 3, 0, 310_000, 'the longest ban does not outlive what it is remembered by'],
    [390_000, 1, false, 0, 300_000, 300_000, 'a third is as long as the last of the list', 7],
    [690_000, 1, true, 3, 0, 310_000, 'it ends'],
    [1_000_000, 1, true, 3, 0, 0, 'and is forgotten after the longest ban and ten seconds without a strike'],
    [1_000_000, 1, false, 0, 60_000, 60_000, 'so that the next is a first ban', 3],
  ],
)
