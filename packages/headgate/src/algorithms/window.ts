/** What limits of so many units in a window have in common, however they count them. */
import { unexpected } from '../errors/headgate-error.js'
import { LEASE_PARTS, type Limit, type OptionField } from './algorithm.js'
import { type Duration, durationOption, formatDurationUs, parseWindowUs } from './durations.js'
import { mulDivFloor } from './exact-fraction.js'
import {
  COUNTS_FIELD,
  type Counting,
  isNotAbove,
  NAME_FIELD,
  type Named,
  namingOf,
  parseUnits,
  quotaOf,
  resized,
} from './limit-options.js'

/** A limit of so many units in a window. */
export interface WindowLimit extends Limit {
  readonly windowUs: number
}

export interface WindowOptions extends Named, Counting {
  /** Units per window; 0 is a ban. */
  readonly limit: number
  /** Such as `'1m'` or `'500ms'`; a bare number is seconds, not milliseconds. */
  readonly window: Duration
}

export const LIMIT_FIELD: OptionField = {
  kind: 'units',
  text: 'Units per window; 0 is a ban.',
  required: true,
}
export const WINDOW_FIELD: OptionField = {
  kind: 'duration',
  text: 'How long a unit counts.',
  required: true,
}
export const WINDOW_FIELDS = {
  limit: LIMIT_FIELD,
  window: WINDOW_FIELD,
  counts: COUNTS_FIELD,
  name: NAME_FIELD,
} as const

/** Validates the numbers of a window. */
export function parseWindow(options: WindowOptions): Pick<WindowLimit, 'limit' | 'windowUs' | 'quota'> {
  const limit = parseUnits(options.limit, 'limit')
  const windowUs = parseWindowUs(options.window)
  if (windowUs % 1_000 !== 0) {
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'window', 'a whole number of milliseconds', options.window)
  }
  return { limit, windowUs, quota: quotaOf(limit, windowUs) }
}

/** Enough for a probe, and soon forgotten. */
const PROBE = { limit: 1_000_000, windowUs: 1_000_000 }

/** The numbers of all windows. */
export const windowNumbers = {
  resize<L extends WindowLimit>(limit: L, units: number, factor: number): L {
    return Object.freeze(resized(limit, units, factor))
  },
  /** A share below one unit is one unit in a longer window. */
  share<L extends WindowLimit>(limit: L, processes: number): L {
    if (processes <= 1 || limit.limit === 0) return limit
    const units = Math.floor(limit.limit / processes)
    if (units >= 1) return { ...limit, limit: units }
    // In whole milliseconds, as every window.
    const windowUs = Math.ceil((limit.windowUs * processes) / limit.limit / 1_000) * 1_000
    return { ...limit, limit: 1, windowUs, quota: { ...limit.quota, windowUs } }
  },
  part<L extends WindowLimit>(limit: L, part: number, of: number): L {
    return { ...limit, limit: mulDivFloor(limit.limit, part, of) }
  },
  probe<L extends WindowLimit>(limit: L): L {
    return { ...limit, ...PROBE }
  },
  mostIn(limit: WindowLimit, intervalUs: number): number {
    return intervalUs <= limit.windowUs ? limit.limit : Number.POSITIVE_INFINITY
  },
  ratePerSecond(limit: WindowLimit): number {
    return (limit.limit * 1_000_000) / limit.windowUs
  },
  isCoveredBy(limit: WindowLimit, stricter: Limit): boolean {
    return isNotAbove(stricter, limit) && stricter.algorithm.mostIn(stricter, limit.windowUs) <= limit.limit
  },
  refilled(): number {
    return 0
  },
}

/** What leases of windows have in common. */
export const windowLeasing = {
  span: 'the window',
  longestUs(limit: WindowLimit): number {
    return Math.floor(limit.windowUs / LEASE_PARTS)
  },
  lastsUs(_limit: WindowLimit, lease: { readonly ttlUs: number }): number {
    return lease.ttlUs
  },
}

/** A window as a policy file would have it. */
export function writtenWindow(limit: WindowLimit, kind: string): Readonly<Record<string, string | number>> {
  return {
    algorithm: limit.algorithm.name,
    limit: limit.limit,
    window: durationOption(limit.windowUs),
    ...namingOf(limit, kind),
  }
}

/** The words of a window: `sliding-window-log 10 in 1m`. */
export function windowWords(limit: WindowLimit): string {
  return `${limit.algorithm.name} ${limit.limit} in ${formatDurationUs(limit.windowUs)}`
}
