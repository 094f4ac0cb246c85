/**
 * Derives a limit with other numbers. The id stays the same, because it never contains a number: usage counted
 * under the old numbers counts under the new ones.
 */
import type { Limit, Quota } from '../engine/limit.js'
import { boundedRate, MAX_UNITS } from './limits.js'

/** Scales a limit by a positive factor, rounding down but to at least 1. A ban stays a ban. */
export function scaleLimit(limit: Limit, factor: number): Limit {
  if (factor === 1) return limit
  return withNumbers(limit, scaleUnits(limit.limit, factor), factor)
}

/** Changes the number of units. A bucket refills faster or slower by the same factor. */
export function replaceUnits(limit: Limit, units: number): Limit {
  return withNumbers(limit, units, limit.limit === 0 ? 1 : units / limit.limit)
}

function withNumbers(limit: Limit, units: number, factor: number): Limit {
  const changed = { ...limit, limit: units, quota: scaleQuota(limit, units, factor) }
  // An empty bucket that never refills is a ban, and its rate means nothing.
  if (changed.algorithm !== 'token-bucket' || units === 0) return Object.freeze(changed)
  const refillPerSecond = boundedRate(changed.refillPerSecond * factor, units)
  return Object.freeze({ ...changed, refillPerSecond })
}

function scaleQuota({ limit, quota }: Limit, units: number, factor: number): Quota {
  const same = quota.limit === limit
  return {
    ...quota,
    limit: same ? units : scaleUnits(quota.limit, factor),
    burst: quota.burst === null ? null : quota.burst === limit ? units : scaleUnits(quota.burst, factor),
  }
}

function scaleUnits(units: number, factor: number): number {
  // The epsilon keeps a factor such as 1.1 from losing a unit to binary rounding.
  return units === 0 ? 0 : Math.min(MAX_UNITS, Math.max(1, Math.floor(units * factor + 1e-9)))
}
