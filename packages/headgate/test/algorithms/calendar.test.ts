import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CalendarOptions, calendarOf, parseCalendar, spanMs } from '../../src/algorithms/calendar.ts'

const HOUR_MS = 3_600_000

function periodAt(options: CalendarOptions, at: string): [start: string, end: string, hours: number] {
  const { startMs, endMs } = calendarOf(parseCalendar(options)).at(Date.parse(at))
  return [new Date(startMs).toISOString(), new Date(endMs).toISOString(), (endMs - startMs) / HOUR_MS]
}

describe('calendar periods', () => {
  it.each([
    [{ per: 'day' }, '2027-01-15T08:00Z', '2027-01-15T00:00:00.000Z', '2027-01-16T00:00:00.000Z', 24],
    [{ per: 'week' }, '2027-01-15T08:00Z', '2027-01-11T00:00:00.000Z', '2027-01-18T00:00:00.000Z', 168],
    [
      { per: 'week', anchor: 'sunday' },
      '2027-01-15T08:00Z',
      '2027-01-10T00:00:00.000Z',
      '2027-01-17T00:00:00.000Z',
      168,
    ],
    [{ per: 'month' }, '2028-02-29T23:59Z', '2028-02-01T00:00:00.000Z', '2028-03-01T00:00:00.000Z', 29 * 24],
    [
      { per: 'month', anchor: 31 },
      '2027-02-15T00:00Z',
      '2027-01-31T00:00:00.000Z',
      '2027-02-28T00:00:00.000Z',
      28 * 24,
    ],
    [
      { per: 'month', anchor: 31 },
      '2027-02-28T00:00Z',
      '2027-02-28T00:00:00.000Z',
      '2027-03-31T00:00:00.000Z',
      31 * 24,
    ],
    [{ per: 'year' }, '2028-12-31T23:59Z', '2028-01-01T00:00:00.000Z', '2029-01-01T00:00:00.000Z', 366 * 24],
    [
      { per: 'year', anchor: '02-29' },
      '2027-02-28T00:00Z',
      '2027-02-28T00:00:00.000Z',
      '2028-02-29T00:00:00.000Z',
      366 * 24,
    ],
    [
      { per: 'year', anchor: '04-01' },
      '2027-03-31T23:59Z',
      '2026-04-01T00:00:00.000Z',
      '2027-04-01T00:00:00.000Z',
      365 * 24,
    ],
    [
      { per: 'day', timeZone: 'Antarctica/Troll' },
      '2027-10-31T12:00Z',
      '2027-10-30T22:00:00.000Z',
      '2027-11-01T00:00:00.000Z',
      26,
    ],
    [
      { per: 'day', timeZone: 'Europe/Berlin' },
      '2027-03-28T12:00Z',
      '2027-03-27T23:00:00.000Z',
      '2027-03-28T22:00:00.000Z',
      23,
    ],
    [
      { per: 'day', timeZone: 'Europe/Berlin' },
      '2027-10-31T12:00Z',
      '2027-10-30T22:00:00.000Z',
      '2027-10-31T23:00:00.000Z',
      25,
    ],
    [
      { per: 'month', timeZone: 'America/New_York' },
      '2027-03-15T12:00Z',
      '2027-03-01T05:00:00.000Z',
      '2027-04-01T04:00:00.000Z',
      31 * 24 - 1,
    ],
    // Midnight did not exist: the clocks were set from 0:00 to 1:00.
    [
      { per: 'day', timeZone: 'America/Sao_Paulo' },
      '2018-11-04T12:00Z',
      '2018-11-04T03:00:00.000Z',
      '2018-11-05T02:00:00.000Z',
      23,
    ],
    // Midnight came twice: the clocks were set from 1:00 to 0:00.
    [
      { per: 'day', timeZone: 'America/Havana' },
      '2027-11-07T12:00Z',
      '2027-11-07T04:00:00.000Z',
      '2027-11-08T05:00:00.000Z',
      25,
    ],
    // Samoa left out 30 December 2011.
    [
      { per: 'day', timeZone: 'Pacific/Apia' },
      '2011-12-30T10:00Z',
      '2011-12-30T10:00:00.000Z',
      '2011-12-31T10:00:00.000Z',
      24,
    ],
  ] as const)('%j at %s is from %s to %s', (options, at, start, end, hours) => {
    expect(periodAt(options, at)).toEqual([start, end, hours])
    expect(hours * HOUR_MS).toBeLessThanOrEqual(spanMs(options.per))
  })

  it('periods follow each other without a gap, begin on their day, and are no longer than their span', () => {
    const calendars = fc.oneof(
      fc.record({ per: fc.constant('day' as const) }),
      fc.record({ per: fc.constant('week' as const), anchor: fc.constantFrom('monday', 'sunday') }),
      fc.record({ per: fc.constant('month' as const), anchor: fc.integer({ min: 1, max: 31 }) }),
      fc.record({ per: fc.constant('year' as const), anchor: fc.constantFrom('01-01', '02-29', '07-31') }),
    )
    const zones = fc.constantFrom(
      'UTC',
      'Europe/Berlin',
      'America/Havana',
      'Asia/Beirut',
      'Africa/Cairo',
      'Australia/Lord_Howe',
      'Asia/Kathmandu',
      'Pacific/Kiritimati',
      'America/Asuncion',
      'Antarctica/Troll',
    )
    const moments = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2090, 0) })
    fc.assert(
      fc.property(calendars, zones, moments, (options, timeZone, ms) => {
        const calendar = calendarOf(parseCalendar({ ...options, timeZone }))
        const period = calendar.at(ms)
        expect(period.startMs <= ms && ms < period.endMs).toBe(true)
        expect(calendar.next(period).startMs).toBe(period.endMs)
        expect(calendar.at(period.endMs)).toEqual(calendar.next(period))
        expect(calendar.at(period.endMs - 1)).toEqual(period)
        expect(period.endMs - period.startMs).toBeLessThanOrEqual(spanMs(options.per))
        const day = (at: number): string => new Date(at).toLocaleDateString('en-CA', { timeZone })
        expect(day(period.startMs) > day(period.startMs - 1)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})
