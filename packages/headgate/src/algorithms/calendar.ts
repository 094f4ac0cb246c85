/**
 * Calendar periods in a time zone: days, weeks, months and years that begin at the first moment of a local date. A day on which
 * clocks change has 22 to 26 hours; where midnight does not exist, the date begins when the clocks have changed.
 *
 * Pure: what is asked of `Intl` is the offset of a zone at a given moment, never the time.
 */
import { unexpected } from '../errors/headgate-error.js'
import { parseWhole } from './limit-options.js'

/** A calendar period: a day, a week, a month or a year. */
export type Per = 'day' | 'week' | 'month' | 'year'

/** The day on which weeks start. */
export type Weekday = (typeof WEEKDAYS)[number]

export const PERS: readonly Per[] = ['day', 'week', 'month', 'year']
export const WEEKDAYS = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
] as const

/** Which days begin a period, and where. */
export interface CalendarOptions {
  readonly per: Per
  /** A name of the IANA database, such as `Europe/Berlin`. Default `UTC`. */
  readonly timeZone?: string
  /**
   * The day that begins a period: the weekday of a week (`'monday'` by default), the day of a month (1 by default; a month that is
   * too short begins on its last day), the date of a year (`'01-01'` by default).
   */
  readonly anchor?: number | string
}

/** One period. Times are whole seconds, in milliseconds. */
export interface Period {
  /** Counts up by one from period to period. */
  readonly number: number
  readonly startMs: number
  readonly endMs: number
}

const DAY_MS = 86_400_000
/** The most that clocks are set back anywhere, two hours: in Antarctica/Troll. */
const SET_BACK_MS = 7_200_000

/** The most days of each. */
export const MOST_DAYS: Readonly<Record<Per, number>> = { day: 1, week: 7, month: 31, year: 366 }

/** The longest a period can be. */
export function spanMs(per: Per): number {
  return MOST_DAYS[per] * DAY_MS + SET_BACK_MS
}

const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
/** 1 January 1970 was a Thursday, the fourth day of a week. */
const EPOCH_WEEKDAY = 3

/** A calendar as one text: `month`, `month-europe_berlin-15`. It names the calendar in the id of a limit. */
export function parseCalendar(
  options: CalendarOptions,
): Required<CalendarOptions> & { readonly kind: string } {
  const { per, timeZone = 'UTC' } = options
  if (!PERS.includes(per)) throw invalid('per', `one of ${PERS.join(', ')}`, per)
  if (typeof timeZone !== 'string' || !isTimeZone(timeZone)) {
    throw invalid('timeZone', "a time zone of the IANA database, such as 'UTC' or 'Europe/Berlin'", timeZone)
  }
  const anchor = parseAnchor(per, options.anchor)
  // `Etc/GMT` from the 5th is another calendar than `Etc/GMT-5`, so a number of a zone has another sign before it than an anchor.
  const zoneText = timeZone
    .toLowerCase()
    .replaceAll('/', '_')
    .replace(/-(?=\d)/, '_')
  const zone = timeZone === 'UTC' ? '' : `-${zoneText}`
  const kind = `${per}${zone}${anchor === DEFAULT_ANCHORS[per] ? '' : `-${anchor}`}`
  return { per, timeZone, anchor, kind }
}

export const DEFAULT_ANCHORS: Readonly<Record<Per, number | string>> = {
  day: '',
  week: 'monday',
  month: 1,
  year: '01-01',
}

function parseAnchor(per: Per, anchor: unknown): number | string {
  if (anchor === undefined || anchor === DEFAULT_ANCHORS[per]) return DEFAULT_ANCHORS[per]
  if (per === 'day') throw invalid('anchor', 'nothing, because a day begins at midnight', anchor)
  if (per === 'month') return parseWhole(anchor, 'anchor', 1, 31)
  if (per === 'week') {
    if (WEEKDAYS.includes(anchor as Weekday)) return anchor as Weekday
    throw invalid('anchor', `the day a week begins on, one of ${WEEKDAYS.join(', ')}`, anchor)
  }
  const [, month, day] = (typeof anchor === 'string' && /^(\d\d)-(\d\d)$/.exec(anchor)) || []
  const days = month === '02' ? 29 : (MONTH_DAYS[Number(month) - 1] ?? 0)
  if (Number(day) >= 1 && Number(day) <= days) return anchor as string
  throw invalid('anchor', "the date a year begins on, such as '04-01'", anchor)
}

function invalid(field: string, expected: string, got: unknown) {
  return unexpected('ERR_HEADGATE_INVALID_LIMIT', field, expected, got)
}

function isTimeZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en-US', { timeZone })
    return /^[\w+:/-]{1,64}$/.test(timeZone)
  } catch {
    return false
  }
}

/** Limits between threads are data, so that a limit says its calendar, and the calendars are kept here; as many as policies name. */
const calendars = new Map<string, Calendar>()

/** The calendar of options that were parsed. */
export function calendarOf(options: Required<CalendarOptions> & { readonly kind: string }): Calendar {
  let calendar = calendars.get(options.kind)
  if (calendar === undefined) {
    calendar = new Calendar(options)
    calendars.set(options.kind, calendar)
  }
  return calendar
}

/** A date of the proleptic Gregorian calendar; months count from 1. */
interface LocalDate {
  readonly year: number
  readonly month: number
  readonly day: number
}

export class Calendar {
  readonly #per: Per
  readonly #zone: Intl.DateTimeFormat | null
  /** Day of the week from 0, of the month from 1; month of the year from 1. */
  readonly #day: number
  readonly #month: number
  /** The period that was last asked for: nearly always that of now. */
  #last: Period = { number: 0, startMs: 0, endMs: 0 }
  #bounds = ''
  #boundsOf: Period | null = null

  constructor({ per, timeZone, anchor }: Required<CalendarOptions>) {
    this.#per = per
    this.#zone = timeZone === 'UTC' ? null : zoneFormat(timeZone)
    const [month, day] = per === 'year' ? String(anchor).split('-').map(Number) : []
    this.#month = month ?? 1
    this.#day = day ?? (per === 'week' ? WEEKDAYS.indexOf(anchor as Weekday) : Number(anchor))
  }

  /** The period that contains a moment. */
  at(ms: number): Period {
    const last = this.#last
    if (ms >= last.startMs && ms < last.endMs) return last
    this.#last = this.#find(ms)
    return this.#last
  }

  next(period: Period): Period {
    return this.#numbered(period.number + 1)
  }

  /** The bounds of this period and the next two as a script reads them: the last digit of the number and, without a colon, the start; then the ends, in seconds. */
  bounds(ms: number): string {
    const period = this.at(ms)
    if (period !== this.#boundsOf) {
      const next = this.next(period)
      const after = this.next(next)
      const seconds = [period.startMs, period.endMs, next.endMs, after.endMs].map(each => each / 1_000)
      this.#bounds = `${digitOf(period)}${seconds.join(':')}`
      this.#boundsOf = period
    }
    return this.#bounds
  }

  #find(ms: number): Period {
    const date = dateOf(Math.floor((ms + this.#offsetMs(ms)) / DAY_MS))
    let period = this.#numbered(this.#numberOf(date))
    while (ms < period.startMs) period = this.#numbered(period.number - 1)
    while (ms >= period.endMs) period = this.#numbered(period.number + 1)
    return period
  }

  #numbered(number: number): Period {
    return { number, startMs: this.#startMs(number), endMs: this.#startMs(number + 1) }
  }

  /** The number of the period that a date is in. */
  #numberOf({ year, month, day }: LocalDate): number {
    if (this.#per === 'day') return dayNumber(year, month, day)
    if (this.#per === 'week') {
      return Math.floor((dayNumber(year, month, day) + EPOCH_WEEKDAY - this.#day) / 7)
    }
    if (this.#per === 'month') {
      return year * 12 + month - 1 - (day < clipped(year, month, this.#day) ? 1 : 0)
    }
    const isBefore = month < this.#month || (month === this.#month && day < clipped(year, month, this.#day))
    return isBefore ? year - 1 : year
  }

  #startMs(number: number): number {
    return this.#midnightMs(this.#firstDay(number))
  }

  /** The first day of a period, counted from 1970. */
  #firstDay(number: number): number {
    if (this.#per === 'day') return number
    if (this.#per === 'week') return number * 7 - EPOCH_WEEKDAY + this.#day
    const year = this.#per === 'month' ? Math.floor(number / 12) : number
    const month = this.#per === 'month' ? number - year * 12 + 1 : this.#month
    return dayNumber(year, month, clipped(year, month, this.#day))
  }

  /** The first moment of a local date. */
  #midnightMs(day: number): number {
    const localMs = day * DAY_MS
    if (this.#zone === null) return localMs
    // Offsets change by less than a day, and seldom twice in two.
    const beforeMs = localMs - this.#offsetMs(localMs - DAY_MS)
    const afterMs = localMs - this.#offsetMs(localMs + DAY_MS)
    const valid = [beforeMs, afterMs].filter(ms => ms + this.#offsetMs(ms) === localMs)
    // There are two where clocks are set back over midnight, and none where they are set forward over it.
    return valid.length === 0 ? beforeMs : Math.min(...valid)
  }

  /** What local clocks are ahead of UTC at a moment. */
  #offsetMs(ms: number): number {
    if (this.#zone === null) return 0
    const parts: Record<string, number> = {}
    for (const { type, value } of this.#zone.formatToParts(ms)) parts[type] = Number(value)
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts
    const localSeconds = dayNumber(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
    return localSeconds * 1_000 - Math.floor(ms / 1_000) * 1_000
  }
}

/** A script tells periods apart by it. */
export function digitOf({ number }: Period): number {
  return ((number % 10) + 10) % 10
}

function zoneFormat(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

/** The day of a month, or its last one if it is shorter. */
function clipped(year: number, month: number, day: number): number {
  const days = month === 2 && isLeap(year) ? 29 : (MONTH_DAYS[month - 1] as number)
  return Math.min(day, days)
}

/** Days from 1 January 1970 to a date, in eras of 400 years that begin in March. */
function dayNumber(year: number, month: number, day: number): number {
  const from = month <= 2 ? year - 1 : year
  const era = Math.floor(from / 400)
  const ofEra = from - era * 400
  const ofYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  return era * 146_097 + ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear - 719_468
}

function dateOf(days: number): LocalDate {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const ofEra = shifted - era * 146_097
  const year = Math.floor(
    (ofEra - Math.floor(ofEra / 1_460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365,
  )
  const ofYear = ofEra - (365 * year + Math.floor(year / 4) - Math.floor(year / 100))
  const fromMarch = Math.floor((5 * ofYear + 2) / 153)
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
  const day = ofYear - Math.floor((153 * fromMarch + 2) / 5) + 1
  return { year: year + era * 400 + (month <= 2 ? 1 : 0), month, day }
}
