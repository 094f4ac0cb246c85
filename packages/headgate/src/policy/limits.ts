import type {
  BucketedCounterLimit,
  CounterLimit,
  LogLimit,
  Quota,
  TokenBucketLimit,
} from '../engine/limit.js'
import { unexpected } from '../errors.js'
import { type Duration, formatDurationUs, parseDurationUs } from './durations.js'

/** The largest limit or capacity. */
export const MAX_UNITS = 2 ** 32 - 1
const MAX_BUCKETS = 1_000
// A bucket that takes longer to fill would leave the range in which microseconds are exact.
const MAX_FILL_US = 2 ** 52
const MAX_REFILL_PER_SECOND = MAX_UNITS * 1_000
const NAME = /^[A-Za-z0-9_-]{1,32}$/

/** What any limit may carry besides its numbers. */
interface Named {
  /** Tells two limits of one policy apart where algorithm and window do not. */
  readonly name?: string
}

export interface WindowOptions extends Named {
  /** Units in a window; 0 is a ban. */
  readonly limit: number
  readonly window: Duration
}

export interface CounterOptions extends WindowOptions {
  /** Cut the window into this many parts and count the oldest whole: exact in any window, slightly stricter. */
  readonly buckets?: number
}

export interface TokenBucketOptions extends Named {
  /** Tokens in a full bucket: what can be used at once. */
  readonly capacity: number
  readonly refillPerSecond: number
}

/** At most `limit` in any window, exactly. Remembers every request of the window. */
export function slidingWindowLog(options: WindowOptions): LogLimit {
  refuseUnknown(options, 'slidingWindowLog', ['limit', 'window', 'name'])
  const limit = parseUnits(options.limit, 'limit')
  const windowUs = parseDurationUs(options.window, 'window')
  return Object.freeze({
    algorithm: 'sliding-window-log',
    id: limitId(options.name, `log-${formatDurationUs(windowUs)}`),
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
  refuseUnknown(options, 'slidingWindowCounter', ['limit', 'window', 'buckets', 'name'])
  const limit = parseUnits(options.limit, 'limit')
  const windowUs = parseDurationUs(options.window, 'window')
  const numbers = { limit, windowUs, quota: quota(limit, windowUs) }
  const window = formatDurationUs(windowUs)
  if (options.buckets === undefined) {
    const id = limitId(options.name, `counter-${window}`)
    return Object.freeze({ algorithm: 'sliding-window-counter', id, ...numbers })
  }
  const buckets = parseBuckets(options.buckets)
  const id = limitId(options.name, `counter-${window}-${buckets}`)
  return Object.freeze({ algorithm: 'sliding-window-buckets', id, ...numbers, buckets })
}

/** Bursts of up to `capacity`, and `refillPerSecond` sustained. */
export function tokenBucket(options: TokenBucketOptions): TokenBucketLimit {
  refuseUnknown(options, 'tokenBucket', ['capacity', 'refillPerSecond', 'name'])
  const capacity = parseUnits(options.capacity, 'capacity')
  const refillPerSecond = parseRate(options.refillPerSecond, capacity)
  const fillUs = Math.max(1, Math.ceil((capacity / refillPerSecond) * 1e6))
  return Object.freeze({
    algorithm: 'token-bucket',
    id: limitId(options.name, 'bucket'),
    limit: capacity,
    refillPerSecond,
    quota: quota(capacity, fillUs),
  })
}

function quota(limit: number, windowUs: number): Quota {
  return Object.freeze({ limit, windowUs, burst: null })
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
