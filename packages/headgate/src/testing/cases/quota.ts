import { quota } from '../../algorithms/quota.js'
import { caseTable } from './case-table.js'

const HOUR_MS = 3_600_000

/** Rows: at ms, cost, allowed, remaining, retry after ms, reset after ms. The history starts at 8:00 UTC, 9:00 in Berlin. */
export const quotaCases = caseTable(
  'quota: 10 a day in Berlin',
  quota({ limit: 10, per: 'day', timeZone: 'Europe/Berlin' }),
  [
    [0, 8, true, 2, 0, 15 * HOUR_MS, 'the day ends at midnight in Berlin, 23:00 UTC'],
    [HOUR_MS, 3, false, 2, 14 * HOUR_MS, 14 * HOUR_MS, 'nothing comes back before'],
    [HOUR_MS, 11, false, 2, null, 14 * HOUR_MS, 'a cost above the limit never fits'],
    [15 * HOUR_MS - 1, 2, true, 0, 0, 1, 'the last millisecond belongs to the day'],
    [15 * HOUR_MS - 1, 1, false, 0, 1, 1, 'and has nothing left'],
    [15 * HOUR_MS, 0, true, 10, 0, 0, 'the next day has everything'],
    [15 * HOUR_MS, 10, true, 0, 0, 24 * HOUR_MS, 'all of which may be used at once'],
    [38 * HOUR_MS, 1, false, 0, HOUR_MS, HOUR_MS, 'for the whole day'],
    [24 * 72.5 * HOUR_MS, 1, true, 9, 0, 2 * HOUR_MS, 'on the day on which clocks are set forward'],
    [24 * 72.5 * HOUR_MS + 2 * HOUR_MS, 1, true, 9, 0, 24 * HOUR_MS, 'the day after it is a whole one again'],
  ],
)
