/**
 * The same limit with other numbers. The id stays, because it never holds a number: whatever a subject has used under
 * the old numbers counts under the new ones.
 */
import type { Limit, Quota } from '../engine/limit.js'
import { boundedRate, MAX_UNITS } from './limits.js'

/** A limit scaled by a positive factor: rounded down, but at least 1, and a ban stays a ban. */
export function scaleLimit(limit: Limit, factor: number): Limit {
  if (factor === 1) return limit
  return withNumbers(limit, scaleUnits(limit.limit, factor), factor)
}

/** A limit with another number of units. A bucket is refilled faster or slower by the same factor. */
export function replaceUnits(limit: Limit, units: number): Limit {
  return withNumbers(limit, units, limit.limit === 0 ? 1 : units / limit.limit)
}

function withNumbers(limit: Limit, units: number, factor: number): Limit {
  const changed = { ...limit, limit: units, quota: scaleQuota(limit, units, factor) }
  // An empty bucket that is never refilled is a ban, and its rate means nothing.
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
  // Multiplying by 1.1 must not lose a unit to the last binary digit.
  return units === 0 ? 0 : Math.min(MAX_UNITS, Math.max(1, Math.floor(units * factor + 1e-9)))
}
