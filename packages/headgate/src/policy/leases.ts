import type { Limit } from '../algorithms/algorithm.js'
import { LEASE_PARTS, type Lease } from '../algorithms/algorithm.js'
import { type Duration, formatDurationUs, parseDurationUs } from '../algorithms/durations.js'
import { type HeadgateError, unexpected } from '../errors/headgate-error.js'

/** How units of a hot key may be taken in advance. */
export type LeaseOptions =
  | 'auto'
  | 'off'
  | {
      /** The most units taken at once. */
      readonly max: number
      /** How long they may be spent: at most a twentieth of the window, or of the time a bucket takes to fill. */
      readonly ttl: Duration
    }

/** Long enough to save a thousand calls, short enough to notice changes elsewhere. */
const AUTO_TTL_US = 1_000_000
/** A shorter lease would expire before it arrives. */
const LEAST_TTL_US = 1_000

/**
 * Returns the limits adjusted for leasing. Rejects, by name, options that could admit more than the limits promise.
 */
export function leaseLimits(
  field: string,
  limits: readonly Limit[],
  options: LeaseOptions | undefined,
): readonly Limit[] {
  if (typeof options === 'object' || (options !== undefined && options !== 'auto' && options !== 'off')) {
    return withLease(limits, parseLease(field, limits, options))
  }
  return options === 'auto' ? withLease(limits, autoLease(limits)) : limits
}

/**
 * Does the same after a multiplier or an override changed numbers for which the options had been validated. May
 * lease less than asked for, never more than the limits promise.
 */
export function leaseChangedLimits(
  limits: readonly Limit[],
  options: LeaseOptions | undefined,
): readonly Limit[] {
  if (typeof options !== 'object') return leaseLimits('lease', limits, options)
  const max = Math.min(options.max, ...limits.map(({ limit }) => limit))
  const ttlUs = Math.min(parseDurationUs(options.ttl, 'lease.ttl'), ...limits.map(longestLeaseUs))
  return withLease(limits, max < 1 || ttlUs < LEAST_TTL_US ? null : { max, ttlUs })
}

function withLease(limits: readonly Limit[], lease: Lease | null): readonly Limit[] {
  return lease === null
    ? limits
    : limits.map(limit => Object.freeze(limit.algorithm.lease?.strict(limit, lease) ?? limit))
}

/** Half the longest allowed, to give up little of the limit; null if that is too short to be useful. */
function autoLease(limits: readonly Limit[]): Lease | null {
  const ttlUs = Math.min(AUTO_TTL_US, ...limits.map(limit => Math.floor(longestLeaseUs(limit) / 2)))
  const max = Math.floor(Math.min(...limits.map(({ limit }) => limit)) / LEASE_PARTS)
  return ttlUs < LEAST_TTL_US || max < 1 ? null : { max, ttlUs }
}

/** 0 if units of the limit may not be leased. */
function longestLeaseUs(limit: Limit): number {
  return limit.algorithm.lease?.longestUs(limit) ?? 0
}

function parseLease(field: string, limits: readonly Limit[], options: unknown): Lease {
  if (typeof options !== 'object' || options === null) {
    throw invalid(field, "'auto', 'off' or { max, ttl }", options)
  }
  const { max, ttl } = options as { max?: unknown; ttl?: unknown }
  const most = Math.min(...limits.map(({ limit }) => limit))
  if (typeof max !== 'number' || !Number.isInteger(max) || max < 1 || max > most) {
    throw invalid(`${field}.max`, `a whole number from 1 to the limit ${most}`, max)
  }
  const ttlUs = parseDurationUs(ttl as Duration, `${field}.ttl`)
  const unleased = limits.find(({ algorithm }) => algorithm.lease === null)
  if (unleased !== undefined)
    throw invalid(`${field}.ttl`, `no lease beside ${unleased.id}, which cannot be leased`, ttl)
  for (const limit of limits) {
    const longestUs = longestLeaseUs(limit)
    if (ttlUs <= longestUs) continue
    const longest = `at most ${formatDurationUs(longestUs)}, 1/${LEASE_PARTS} of ${limit.algorithm.lease?.span}`
    throw invalid(`${field}.ttl`, `${longest} of ${limit.id}`, ttl)
  }
  return { max, ttlUs }
}

function invalid(field: string, expected: string, got: unknown): HeadgateError {
  return unexpected('ERR_HEADGATE_INVALID_POLICY', field, expected, got)
}
