import type {
  BucketedCounterLimit,
  ConcurrencyLimit,
  CounterLimit,
  Limit,
  LogLimit,
  Quota,
  TokenBucketLimit,
} from '../engine/limit.js'
import { unexpected } from '../errors/headgate-error.js'
import { type Duration, formatDurationUs, parseDurationUs, parseWindowUs } from './durations.js'

/** The largest limit or capacity. */
export const MAX_UNITS = 2 ** 32 - 1
const MAX_BUCKETS = 1_000
// A bucket that takes longer to fill would leave the range in which microseconds are exact.
const MAX_FILL_US = 2 ** 52
const MAX_REFILL_PER_SECOND = MAX_UNITS * 1_000
/** Each place is an entry in Redis. */
export const MAX_PLACES = 100_000
const DEFAULT_HOLD_FOR = '30s'
const LEAST_HOLD_US = 1_000_000
const MOST_HOLD_US = 3_600_000_000
const NAME = /^[A-Za-z0-9_-]{1,32}$/

/** The options that any limit may have besides its numbers. */
interface Named {
  /** Tells two limits of one policy apart where algorithm and window do not. */
  readonly name?: string
}

/** A limit over time may count requests instead of units. */
interface Counting {
  /** `requests`: each takes one, whatever it costs, beside limits that take the cost. Default `cost`. */
  readonly counts?: 'cost' | 'requests'
}

export interface WindowOptions extends Named, Counting {
  /** Units in a window; 0 is a ban. */
  readonly limit: number
  /** `'1m'`, `'500ms'`; a bare number is seconds, not milliseconds. */
  readonly window: Duration
}

export interface CounterOptions extends WindowOptions {
  /** Cut the window into this many parts and count the oldest whole: exact in any window, slightly stricter. */
  readonly buckets?: number
}

export interface TokenBucketOptions extends Named, Counting {
  /** Tokens in a full bucket: what can be used at once. */
  readonly capacity: number
  readonly refillPerSecond: number
}

export interface ConcurrencyOptions extends Named {
  /** Requests under way at once; 0 is a ban. */
  readonly limit: number
  /**
   * A place comes free after this time unless it is renewed, so that a lost process costs none for longer. Default 30
   * s.
   */
  readonly holdFor?: Duration
}

/** At most `limit` in any window, exactly. Remembers every request of the window. */
export function slidingWindowLog(options: WindowOptions): LogLimit {
  refuseUnknown(options, 'slidingWindowLog', ['limit', 'window', 'counts', 'name'])
  const limit = parseUnits(options.limit, 'limit')
  const windowUs = parseWindowUs(options.window)
  return Object.freeze({
    algorithm: 'sliding-window-log',
    ...counted(options, `log-${formatDurationUs(windowUs)}`),
    limit,
    windowUs,
    quota: quota(limit, windowUs),
  })
}

/** About `limit` in any window from two numbers a subject; with `buckets` at most `limit`, exactly. */
export function slidingWindowCounter(
  options: CounterOptions & { readonly buckets: number },
): BucketedCounterLimit
export function slidingWindowCounter(options: WindowOptions & { readonly buckets?: never }): CounterLimit
export function slidingWindowCounter(options: CounterOptions): CounterLimit | BucketedCounterLimit
export function slidingWindowCounter(options: CounterOptions): CounterLimit | BucketedCounterLimit {
  refuseUnknown(options, 'slidingWindowCounter', ['limit', 'window', 'buckets', 'counts', 'name'])
  const limit = parseUnits(options.limit, 'limit')
  const windowUs = parseWindowUs(options.window)
  const numbers = { limit, windowUs, quota: quota(limit, windowUs) }
  const window = formatDurationUs(windowUs)
  if (options.buckets === undefined) {
    const named = counted(options, `counter-${window}`)
    return Object.freeze({ algorithm: 'sliding-window-counter', ...named, ...numbers })
  }
  const buckets = parseBuckets(options.buckets)
  const named = counted(options, `counter-${window}-${buckets}`)
  return Object.freeze({ algorithm: 'sliding-window-buckets', ...named, ...numbers, buckets })
}

/** Bursts of up to `capacity`, and `refillPerSecond` sustained. */
export function tokenBucket(options: TokenBucketOptions): TokenBucketLimit {
  refuseUnknown(options, 'tokenBucket', ['capacity', 'refillPerSecond', 'counts', 'name'])
  const capacity = parseUnits(options.capacity, 'capacity')
  const refillPerSecond = parseRate(options.refillPerSecond, capacity)
  const fillUs = Math.max(1, Math.ceil((capacity / refillPerSecond) * 1e6))
  return Object.freeze({
    algorithm: 'token-bucket',
    ...counted(options, 'bucket'),
    limit: capacity,
    refillPerSecond,
    quota: quota(capacity, fillUs),
  })
}

/** At most `limit` requests under way at once, over all processes. A request takes one place, whatever it costs. */
export function concurrency(options: ConcurrencyOptions): ConcurrencyLimit {
  refuseUnknown(options, 'concurrency', ['limit', 'holdFor', 'name'])
  const limit = parsePlaces(options.limit)
  const holdForUs = parseHoldForUs(options.holdFor ?? DEFAULT_HOLD_FOR)
  return Object.freeze({
    algorithm: 'concurrency',
    // Without the time: what is under way stays so when that is changed.
    id: limitId(options.name, 'concurrency'),
    limit,
    holdForUs,
    quota: Object.freeze({ limit, windowUs: holdForUs, burst: null, unit: 'concurrent-requests' }),
  })
}

function quota(limit: number, windowUs: number): Quota {
  return Object.freeze({ limit, windowUs, burst: null })
}

/** The name of a limit over time, which is another one where it counts requests, and what it counts. */
function counted({ name, counts = 'cost' }: Named & Counting, kind: string): Pick<Limit, 'id' | 'counts'> {
  if (counts !== 'cost' && counts !== 'requests')
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'counts', "'cost' or 'requests'", counts)
  return counts === 'cost'
    ? { id: limitId(name, kind) }
    : { id: limitId(name, `requests-${kind}`), counts: 'requests' }
}

/** Algorithm and window are always part of it: changing either must not meet the other's state. */
function limitId(name: string | undefined, kind: string): string {
  if (name === undefined) return kind
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'name', 'up to 32 letters, digits, - or _', name)
  }
  return `${name}-${kind}`
}

/** A limit or capacity; refuses anything else and names `field`. */
export function parseUnits(value: unknown, field: string): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_UNITS) return value
  throw unexpected('ERR_HEADGATE_INVALID_LIMIT', field, `a whole number from 0 to ${MAX_UNITS}`, value)
}

function parsePlaces(value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_PLACES) return value
  throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'limit', `a whole number from 0 to ${MAX_PLACES}`, value)
}

function parseHoldForUs(value: Duration): number {
  const us = parseDurationUs(value, 'holdFor')
  if (us >= LEAST_HOLD_US && us <= MOST_HOLD_US) return us
  throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'holdFor', 'a duration from 1s to 1h', value)
}

function parseBuckets(value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_BUCKETS) return value
  throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'buckets', `a whole number from 1 to ${MAX_BUCKETS}`, value)
}

function parseRate(value: unknown, capacity: number): number {
  if (typeof value !== 'number' || !(value > 0) || value > MAX_REFILL_PER_SECOND) {
    throw unexpected(
      'ERR_HEADGATE_INVALID_LIMIT',
      'refillPerSecond',
      `a number above 0 and up to ${MAX_REFILL_PER_SECOND}`,
      value,
    )
  }
  if ((capacity / value) * 1e6 > MAX_FILL_US) {
    throw unexpected(
      'ERR_HEADGATE_INVALID_LIMIT',
      'refillPerSecond',
      `a rate that fills ${capacity} tokens within 142 years`,
      value,
    )
  }
  return value
}

/** The nearest rate that a bucket of this capacity may have. */
export function boundedRate(refillPerSecond: number, capacity: number): number {
  return Math.min(MAX_REFILL_PER_SECOND, Math.max(refillPerSecond, (capacity * 1e6) / MAX_FILL_US))
}

function refuseUnknown(options: unknown, maker: string, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', maker, 'an object of options', options)
  const unknown = Object.keys(options).find(key => !known.includes(key))
  if (unknown !== undefined)
    throw unexpected(
      'ERR_HEADGATE_INVALID_LIMIT',
      `${maker}.${unknown}`,
      `one of ${known.join(', ')}`,
      unknown,
    )
}
