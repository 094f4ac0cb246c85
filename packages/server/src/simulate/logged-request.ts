import { limitedAddress } from 'headgate/identify'

/** A request in an access log. */
export interface LoggedRequest {
  /** Unix time in milliseconds. */
  readonly atMs: number
  /** The callers, from the most specific to the least: `['user:42', 'ip:192.0.2.1']`. */
  readonly subjects: readonly string[]
  readonly method?: string
  readonly path?: string
  readonly tier?: string
  readonly cost?: number
}

/** Parses a line of a log. Returns null for a line without a request. */
export type ReadLine = (line: string) => LoggedRequest | null

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const COMMON_TIME = /^(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})$/
/** Numbers below these are seconds and milliseconds since 1970; larger ones are microseconds. */
const SECONDS_BELOW = 1e11
const MILLISECONDS_BELOW = 1e14
/** In the year 2255. */
const LATEST_MS = Number.MAX_SAFE_INTEGER / 1000

/**
 * Returns the subject of an address; IPv6 callers count by their /64, as at the gateway. Null if it is not an
 * address.
 */
export function addressSubject(text: string): string | null {
  const address = limitedAddress(text)
  return address === null ? null : `ip:${address}`
}

/**
 * Parses a time as logs write it: a number since 1970, `17/Nov/2026:09:00:00 +0000`, or ISO 8601. NaN if it is
 * invalid, before 1970, or so late that a limiter could not count in microseconds any more.
 */
export function readTime(text: string): number {
  const atMs = parseTime(text)
  return atMs >= 0 && atMs <= LATEST_MS ? atMs : Number.NaN
}

function parseTime(text: string): number {
  if (text === '') return Number.NaN
  const number = Number(text)
  if (!Number.isNaN(number)) return readEpoch(number)
  const common = COMMON_TIME.exec(text)
  if (common === null) return Date.parse(text)
  const [, day, month = '', year, hour, minute, second, sign, zoneHour, zoneMinute] = common
  const utc = Date.UTC(
    Number(year),
    MONTHS.indexOf(month),
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
  )
  const offsetMs = (Number(zoneHour) * 60 + Number(zoneMinute)) * 60_000
  return MONTHS.includes(month) ? utc - (sign === '-' ? -offsetMs : offsetMs) : Number.NaN
}

function readEpoch(number: number): number {
  if (number < SECONDS_BELOW) return number * 1000
  return number < MILLISECONDS_BELOW ? number : number / 1000
}
