import { concurrency } from '../../algorithms/concurrency.js'
import { caseTable } from './case-table.js'

/** Rows: at ms, cost, allowed, remaining, retry after ms, reset after ms. */
export const concurrencyCases = caseTable(
  'concurrency: 3 in flight, each held for 10 s',
  concurrency({ limit: 3, holdFor: '10s' }),
  [
    [0, 1, true, 2, 0, 10_000, 'the first takes a permit for as long as it is held'],
    [4_000, 2, true, 0, 0, 10_000, 'a request may take several'],
    [
      5_000,
      1,
      false,
      0,
      1_000,
      9_000,
      'all are taken; nobody knows when one will be free, so the wait is a hint',
    ],
    [9_500, 1, false, 0, 500, 4_500, 'never longer than until the first place expires'],
    [10_000, 1, true, 0, 0, 10_000, 'which frees it although nobody gave it back'],
    [10_000, 4, false, 0, null, 10_000, 'a cost above the limit never fits'],
    [13_999, 2, false, 0, 1, 6_001, 'two permits expire together'],
    [14_000, 2, true, 0, 0, 10_000, 'with the request that took them'],
    [60_000, 0, true, 3, 0, 0, 'all expire at last'],
  ],
)
