import { MAX_UNITS } from '../algorithms/algorithm.js'
import { toWhole } from '../algorithms/durations.js'

/** The numbers of a class of caller. A window left out, or `'unlimited'`, is not limited. */
export interface TierOptions {
  readonly minute?: number | 'unlimited'
  readonly hour?: number | 'unlimited'
  readonly day?: number | 'unlimited'
  /** Units in a calendar month of UTC. */
  readonly month?: number | 'unlimited'
  /** How many times the minute's limit may be used at once. */
  readonly burst?: number
  /** How important its requests are at an upstream that has not room for all. Default `normal`. */
  readonly priority?: Priority
}

/** The highest comes first. */
export const PRIORITIES = ['high', 'normal', 'low'] as const
/** How important a request is when an upstream has not room for all. */
export type Priority = (typeof PRIORITIES)[number]

/** The numbers of the five classes of caller that a public API starts with. */
export const DEFAULT_TIERS = {
  anonymous: { minute: 10, hour: 100, day: 1_000, burst: 2 },
  free: { minute: 30, hour: 500, day: 5_000, burst: 2 },
  pro: { minute: 100, hour: 2_000, day: 50_000, burst: 3 },
  enterprise: { minute: 500, hour: 10_000, day: 'unlimited', burst: 5 },
  internal: { minute: 1_000, hour: 'unlimited', day: 'unlimited' },
} as const satisfies Record<string, TierOptions>

/** The spans of a tier's limits. */
export const SPANS_US = {
  minute: 60_000_000,
  hour: 3_600_000_000,
  day: 86_400_000_000,
  month: 31 * 86_400_000_000,
} as const

/** Returns a tier with some of its numbers replaced. The burst it had stays, rounded down to whole units. */
export function overlayTier(tier: TierOptions, numbers: TierOptions): TierOptions {
  const { burst, ...both } = { ...tier, ...numbers }
  const { minute } = both
  if (burst === undefined || typeof minute !== 'number') return both
  const atOnce = Math.min(MAX_UNITS, Math.floor(toWhole(minute * burst)))
  return { ...both, burst: minute === 0 ? burst : Math.max(1, atOnce / minute) }
}
