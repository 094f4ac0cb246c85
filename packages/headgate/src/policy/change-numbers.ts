/** Derives a limit with other numbers. */
import type { Limit } from '../algorithms/algorithm.js'
import { scaleUnits } from '../algorithms/limit-options.js'

/** Scales a limit by a positive factor, rounding down but to at least 1. A ban stays a ban. */
export function scaleLimit(limit: Limit, factor: number): Limit {
  if (factor === 1) return limit
  return limit.algorithm.resize(limit, scaleUnits(limit.limit, factor), factor)
}

/** Changes the number of units. A bucket refills faster or slower by the same factor. */
export function replaceUnits(limit: Limit, units: number): Limit {
  return limit.algorithm.resize(limit, units, limit.limit === 0 ? 1 : units / limit.limit)
}
