import { type Limit, MAX_UNITS } from '../algorithms/algorithm.js'
import { toWhole } from '../algorithms/durations.js'
import { parseUnits } from '../algorithms/limit-options.js'
import { quota } from '../algorithms/quota.js'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { tokenBucket } from '../algorithms/token-bucket.js'
import { type HeadgateError, unexpected } from '../errors/headgate-error.js'
import { rejectUnknown } from '../errors/reject-unknown.js'
import { replaceUnits } from './change-numbers.js'
import { type Policy, type PolicyLimit, parseTier, TIER_LIMITS, type TierLimits } from './policies.js'
import { DEFAULT_TIERS, overlayTier, PRIORITIES, SPANS_US, type TierOptions } from './tier-numbers.js'

const FIELDS = ['minute', 'hour', 'day', 'month', 'burst', 'priority']

/** A class of caller for `createLimiter({ tiers })`. */
export interface Tier extends TierOptions {
  readonly [TIER_LIMITS]: TierLimits
}

/** What every tier carries. */
export const limitsOfTiers: TierLimits = { of: tierLimits, replace: withNumbers }

/**
 * Makes a class of caller of its numbers.
 *
 * @example
 * const limiter = createLimiter({ tiers: { free: tier({ minute: 3 }), pro: tier({ minute: 100, day: 50_000 }) } })
 */
export function tier(options: TierOptions): Tier {
  tierLimits(options)
  return Object.freeze({ ...options, [TIER_LIMITS]: limitsOfTiers })
}

/** The five classes of caller that a public API starts with. */
export const defaultTiers: Readonly<Record<keyof typeof DEFAULT_TIERS, Tier>> =
  /* @__PURE__ */ tiersOf(DEFAULT_TIERS)

function tiersOf<Name extends string>(numbers: Readonly<Record<Name, TierOptions>>): Record<Name, Tier> {
  const tiers = Object.entries<TierOptions>(numbers).map(([name, options]) => [name, tier(options)])
  return Object.fromEntries(tiers) as Record<Name, Tier>
}

/** Returns the limits of a tier, which are charged together. */
export function tierLimits(tier: TierOptions): readonly Limit[] {
  // A number in place of the object would otherwise be a tier without limits.
  if (typeof tier !== 'object' || tier === null || Array.isArray(tier)) {
    throw invalid('options', `an object of ${FIELDS.join(', ')}`, tier)
  }
  rejectUnknown(tier, FIELDS, { code: 'ERR_HEADGATE_INVALID_POLICY', before: 'tier ' })
  if (tier.priority !== undefined && !PRIORITIES.includes(tier.priority)) {
    throw invalid('priority', `one of ${PRIORITIES.join(', ')}`, tier.priority)
  }
  const minute = parseQuota(tier.minute, 'minute')
  const hour = parseQuota(tier.hour, 'hour')
  const day = parseQuota(tier.day, 'day')
  const month = parseQuota(tier.month, 'month')
  const limits: Limit[] = []
  if (minute !== null) limits.push(...minuteLimits(minute, tier.burst))
  else if (tier.burst !== undefined) throw invalid('burst', 'a minute limit to multiply', tier.burst)
  // A log of 50,000 entries per caller would take too much memory; the counter needs three numbers.
  if (hour !== null) limits.push(slidingWindowCounter({ limit: hour, window: '1h' }))
  if (day !== null) limits.push(slidingWindowCounter({ limit: day, window: '1d' }))
  if (month !== null) limits.push(quota({ limit: month, per: 'month' }))
  return limits
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
  const told = Object.freeze({ limit, windowUs: SPANS_US.minute, burst: atOnce })
  const log = slidingWindowLog({ limit: atOnce, window: '1m' })
  // A ban has nothing to refill.
  if (limit === 0) return [log]
  const bucket = tokenBucket({ capacity: atOnce, refillPerSecond: limit / 60 })
  return [
    { ...log, quota: told },
    { ...bucket, quota: told },
  ]
}

/**
 * A tier with some of its numbers replaced. Another policy keeps its algorithms, and what was used: the limits with the
 * span of a number take it, and a span without a limit gets one.
 */
function withNumbers(policy: Policy, numbers: TierOptions): Policy {
  if (policy.numbers !== undefined && policy.tier !== null) {
    const replaced = overlayTier(policy.numbers, numbers)
    return parseTier(policy.tier, replaced, tierLimits(replaced))
  }
  const { burst: _burst, priority: _priority, ...spans } = numbers
  const missing = { ...spans }
  const kept = policy.limits.flatMap((named): PolicyLimit[] => {
    const span = spanOf(named)
    const units = span === null ? undefined : spans[span]
    if (span === null || units === undefined) return [named]
    delete missing[span]
    return units === 'unlimited' ? [] : [{ ...named, limit: replaceUnits(named.limit, units) }]
  })
  const added = tierLimits(missing).map(limit => ({ name: `${policy.name}.${limit.id}`, limit }))
  return { ...policy, limits: [...kept, ...added] }
}

function spanOf({ limit: { quota } }: PolicyLimit): keyof typeof SPANS_US | null {
  if (quota.unit !== undefined) return null
  const found = Object.entries(SPANS_US).find(([, us]) => us === quota.windowUs)
  return found === undefined ? null : (found[0] as keyof typeof SPANS_US)
}

function invalid(field: string, expected: string, got: unknown): HeadgateError {
  return unexpected('ERR_HEADGATE_INVALID_POLICY', `tier ${field}`, expected, got)
}
