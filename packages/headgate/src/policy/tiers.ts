import type { Limit } from '../algorithms/algorithm.js'
import { MAX_UNITS } from '../algorithms/algorithm.js'
import { toWhole } from '../algorithms/durations.js'
import { parseUnits } from '../algorithms/limit-options.js'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { tokenBucket } from '../algorithms/token-bucket.js'
import { type HeadgateError, unexpected } from '../errors/headgate-error.js'

/** The numbers of a class of caller. A window left out, or `'unlimited'`, is not limited. */
export interface TierOptions {
  readonly minute?: number | 'unlimited'
  readonly hour?: number | 'unlimited'
  readonly day?: number | 'unlimited'
  /** How many times the minute's limit may be used at once. */
  readonly burst?: number
  /** How important its requests are at an upstream that has not room for all. Default `normal`. */
  readonly priority?: Priority
}

/** The highest comes first. */
export const PRIORITIES = ['high', 'normal', 'low'] as const
/** How important a request is when an upstream has not room for all. */
export type Priority = (typeof PRIORITIES)[number]

/** The five classes of caller that a public API starts with. */
export const defaultTiers = {
  anonymous: { minute: 10, hour: 100, day: 1_000, burst: 2 },
  free: { minute: 30, hour: 500, day: 5_000, burst: 2 },
  pro: { minute: 100, hour: 2_000, day: 50_000, burst: 3 },
  enterprise: { minute: 500, hour: 10_000, day: 'unlimited', burst: 5 },
  internal: { minute: 1_000, hour: 'unlimited', day: 'unlimited' },
} as const satisfies Record<string, TierOptions>

const FIELDS = ['minute', 'hour', 'day', 'burst', 'priority']

/** Returns the limits of a tier, which are charged together. */
export function tierLimits(tier: TierOptions): readonly Limit[] {
  // A number in place of the object would otherwise be a tier without limits.
  if (typeof tier !== 'object' || tier === null || Array.isArray(tier)) {
    throw invalid('options', `an object of ${FIELDS.join(', ')}`, tier)
  }
  const unknown = Object.keys(tier).find(key => !FIELDS.includes(key))
  if (unknown !== undefined) throw invalid(unknown, `one of ${FIELDS.join(', ')}`, unknown)
  if (tier.priority !== undefined && !PRIORITIES.includes(tier.priority)) {
    throw invalid('priority', `one of ${PRIORITIES.join(', ')}`, tier.priority)
  }
  const minute = parseQuota(tier.minute, 'minute')
  const hour = parseQuota(tier.hour, 'hour')
  const day = parseQuota(tier.day, 'day')
  const limits: Limit[] = []
  if (minute !== null) limits.push(...minuteLimits(minute, tier.burst))
  else if (tier.burst !== undefined) throw invalid('burst', 'a minute limit to multiply', tier.burst)
  // A log of 50,000 entries per caller would take too much memory; the counter needs three numbers.
  if (hour !== null) limits.push(slidingWindowCounter({ limit: hour, window: '1h' }))
  if (day !== null) limits.push(slidingWindowCounter({ limit: day, window: '1d' }))
  return limits
}

/** The spans of a tier's limits. */
export const SPANS_US = { minute: 60_000_000, hour: 3_600_000_000, day: 86_400_000_000 } as const

/** Returns a tier with some of its numbers replaced. The burst it had stays, rounded down to whole units. */
export function overlayTier(tier: TierOptions, numbers: TierOptions): TierOptions {
  const { burst, ...both } = { ...tier, ...numbers }
  const { minute } = both
  if (burst === undefined || typeof minute !== 'number') return both
  const atOnce = Math.min(MAX_UNITS, Math.floor(toWhole(minute * burst)))
  return { ...both, burst: minute === 0 ? burst : Math.max(1, atOnce / minute) }
}

/** Returns null if not limited. Validated before any arithmetic, in which the text '10' would pass for a number. */
function parseQuota(value: unknown, field: string): number | null {
  return value === undefined || value === 'unlimited' ? null : parseUnits(value, `tier ${field}`)
}

/**
 * "10 a minute, burst 2×" keeps both numbers: never more than 20 in any minute (the log), and 10 a minute sustained
 * (the bucket of 20 refilled at 10 a minute). Either alone would allow what the other forbids.
 */
function minuteLimits(limit: number, burst: number | undefined): Limit[] {
  if (burst === undefined || burst === 1) return [slidingWindowLog({ limit, window: '1m' })]
  const atOnce = typeof burst === 'number' && burst > 1 ? toWhole(limit * burst) : Number.NaN
  if (!Number.isInteger(atOnce) || atOnce > MAX_UNITS) {
    throw invalid('burst', `a number of at least 1 that gives a whole number up to ${MAX_UNITS}`, burst)
  }
  const quota = Object.freeze({ limit, windowUs: SPANS_US.minute, burst: atOnce })
  const log = slidingWindowLog({ limit: atOnce, window: '1m' })
  // A ban has nothing to refill.
  if (limit === 0) return [log]
  const bucket = tokenBucket({ capacity: atOnce, refillPerSecond: limit / 60 })
  return [
    { ...log, quota },
    { ...bucket, quota },
  ]
}

function invalid(field: string, expected: string, got: unknown): HeadgateError {
  return unexpected('ERR_HEADGATE_INVALID_POLICY', `tier ${field}`, expected, got)
}
