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
// Filling a bucket more slowly would leave the range in which microseconds are exact.
const MAX_FILL_US = 2 ** 52
const MAX_REFILL_PER_SECOND = MAX_UNITS * 1_000
/** Each place is an entry in Redis. */
export const MAX_PLACES = 100_000
const DEFAULT_HOLD_FOR = '30s'
const LEAST_HOLD_US = 1_000_000
const MOST_HOLD_US = 3_600_000_000
const NAME = /^[A-Za-z0-9_-]{1,32}$/

/** Options that every kind of limit has. */
interface Named {
  /** Distinguishes two limits of one policy that have the same algorithm and window. */
  readonly name?: string
}

/** Limits over time can count requests instead of units. */
interface Counting {
  /** `requests`: each request takes one unit whatever it costs. Default `cost`. */
  readonly counts?: 'cost' | 'requests'
}

export interface WindowOptions extends Named, Counting {
  /** Units per window; 0 is a ban. */
  readonly limit: number
  /** Such as `'1m'` or `'500ms'`; a bare number is seconds, not milliseconds. */
  readonly window: Duration
}

export interface CounterOptions extends WindowOptions {
  /**
   * Cuts the window into this many parts and counts the oldest one whole: exact in any window, and slightly
   * stricter.
   */
  readonly buckets?: number
}

export interface TokenBucketOptions extends Named, Counting {
  /** Tokens in a full bucket: the most that can be used at once. */
  readonly capacity: number
  readonly refillPerSecond: number
}

export interface ConcurrencyOptions extends Named {
  /** Requests in flight at once; 0 is a ban. */
  readonly limit: number
  /**
   * A place frees itself after this time unless it is renewed, so that a lost process does not keep it. Default 30
   * s.
   */
  readonly holdFor?: Duration
}

/** Creates a limit that admits at most `limit` in any window, exactly. Stores every request of the window. */
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

/**
 * Creates a limit that admits about `limit` in any window from two stored numbers; with `buckets`, at most `limit`,
 * exactly.
 */
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

/** Creates a limit that admits bursts of up to `capacity`, and `refillPerSecond` sustained. */
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

/**
 * Creates a limit on requests in flight at once, over all processes. A request takes one place whatever it costs.
 */
export function concurrency(options: ConcurrencyOptions): ConcurrencyLimit {
  refuseUnknown(options, 'concurrency', ['limit', 'holdFor', 'name'])
  const limit = parsePlaces(options.limit)
  const holdForUs = parseHoldForUs(options.holdFor ?? DEFAULT_HOLD_FOR)
  return Object.freeze({
    algorithm: 'concurrency',
    // The hold time is not part of the id, so that changing it keeps the places taken.
    id: limitId(options.name, 'concurrency'),
    limit,
    holdForUs,
    quota: Object.freeze({ limit, windowUs: holdForUs, burst: null, unit: 'concurrent-requests' }),
  })
}

function quota(limit: number, windowUs: number): Quota {
  return Object.freeze({ limit, windowUs, burst: null })
}

/** Returns the limit's id and what it counts. Counting requests is part of the id. */
function counted({ name, counts = 'cost' }: Named & Counting, kind: string): Pick<Limit, 'id' | 'counts'> {
  if (counts !== 'cost' && counts !== 'requests')
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'counts', "'cost' or 'requests'", counts)
  return counts === 'cost'
    ? { id: limitId(name, kind) }
    : { id: limitId(name, `requests-${kind}`), counts: 'requests' }
}

/** Algorithm and window are always part of the id, so that changing either does not meet the other's state. */
function limitId(name: string | undefined, kind: string): string {
  if (name === undefined) return kind
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'name', 'up to 32 letters, digits, - or _', name)
  }
  return `${name}-${kind}`
}

/** Validates a limit or capacity, naming `field` in the refusal. */
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

/** Returns the nearest refill rate that a bucket of this capacity may have. */
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
