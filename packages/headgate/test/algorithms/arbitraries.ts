/** Random limits over the whole accepted range, and random lives of a key, in terms that scale with the limit. */

import fc from 'fast-check'
import type { Limit } from '../../src/algorithms/algorithm.js'
import type { BucketedCounterLimit } from '../../src/algorithms/sliding-window-buckets.js'
import type { CounterLimit } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import type { LogLimit } from '../../src/algorithms/sliding-window-log.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import type { TokenBucketLimit } from '../../src/algorithms/token-bucket.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import type { WindowLimit } from '../../src/algorithms/window.js'
import { isConcurrency, isTokenBucket } from '../support/limit-kinds.js'

export const MAX_UNITS = 2 ** 32 - 1
const MAX_WINDOW_MS = 366 * 86_400_000
export const MAX_RATE = MAX_UNITS * 1_000

/** Whole numbers, with emphasis on the edges of the range. */
const units = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 2_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: MAX_UNITS }) },
  { weight: 1, arbitrary: fc.integer({ min: MAX_UNITS - 3, max: MAX_UNITS }) },
)

/** Windows in milliseconds, from the shortest to the longest. */
const windowMs = fc.oneof(
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 20 }) },
  { weight: 2, arbitrary: fc.constantFrom(1_000, 60_000, 3_600_000, 86_400_000, MAX_WINDOW_MS) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: MAX_WINDOW_MS }) },
)

export const logLimit: fc.Arbitrary<LogLimit> = fc
  .tuple(units, windowMs)
  .map(([limit, ms]) => slidingWindowLog({ limit, window: `${ms}ms` }))

export const counterLimit: fc.Arbitrary<CounterLimit> = fc
  .tuple(units, windowMs)
  .map(([limit, ms]) => slidingWindowCounter({ limit, window: `${ms}ms` }))

export const bucketsLimit: fc.Arbitrary<BucketedCounterLimit> = fc
  .tuple(units, windowMs, fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 1_000 })))
  .map(([limit, ms, buckets]) =>
    slidingWindowCounter({ limit, window: `${ms}ms`, buckets: Math.min(ms, buckets) }),
  )

const rate = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(1, 0.1, 1 / 60, 10 / 60, 10, 1_000, 1 / 3, 2.5) },
  { weight: 2, arbitrary: fc.double({ min: 1e-6, max: 1_000, noNaN: true }) },
  { weight: 1, arbitrary: fc.double({ min: 1, max: MAX_RATE, noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom(MAX_RATE, 1e-9, 2.3e-10, 4e12) },
)

export const tokenLimit: fc.Arbitrary<TokenBucketLimit> = fc
  .tuple(units, rate)
  .filter(([capacity, refillPerSecond]) => (capacity / refillPerSecond) * 1e6 <= 2 ** 52)
  .map(([capacity, refillPerSecond]) => tokenBucket({ capacity, refillPerSecond }))

export const anyLimit: fc.Arbitrary<Limit> = fc.oneof(logLimit, counterLimit, bucketsLimit, tokenLimit)

/** Returns the time in which a limit recovers: its window, or the time the bucket takes to fill. */
export function periodUs(limit: Limit): number {
  if (isConcurrency(limit)) return limit.holdForUs
  return isTokenBucket(limit)
    ? Math.ceil((limit.limit * 1e6) / limit.refillPerSecond)
    : (limit as WindowLimit).windowUs
}

/** How long before the next request: nothing, a moment, a share of the period, or exactly at its edge. */
export type Gap =
  | { readonly us: number }
  | { readonly share: number }
  | { readonly periods: number; readonly us: number }

export const gap: fc.Arbitrary<Gap> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ us: 0 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 2_000 }).map(us => ({ us })) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 1_200 }).map(share => ({ share })) },
  {
    weight: 2,
    arbitrary: fc.record({ periods: fc.integer({ min: 1, max: 2 }), us: fc.integer({ min: -1, max: 1 }) }),
  },
)

/** Microseconds are exact up to the year 2255, and the slowest bucket takes 142 years, so lives end in 2096. */
const LAST_US = 4e15

export function after(nowUs: number, limit: Limit, gap: Gap): number {
  return Math.min(LAST_US, nowUs + gapUs(limit, gap))
}

function gapUs(limit: Limit, gap: Gap): number {
  if ('share' in gap) return Math.floor((periodUs(limit) / 1_000) * gap.share)
  if ('periods' in gap) return Math.max(0, gap.periods * periodUs(limit) + gap.us)
  return gap.us
}

/** The cost of a request: one unit, a share of the limit, all of it, or too much. */
export type Cost = { readonly units: number } | { readonly share: number }

export const cost: fc.Arbitrary<Cost> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ units: 1 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 5 }).map(units => ({ units })) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 1_000 }).map(share => ({ share })) },
  { weight: 1, arbitrary: fc.constant({ share: 1_000 }) },
)

export function costUnits(limit: Limit, cost: Cost): number {
  return 'units' in cost ? cost.units : Math.max(1, Math.floor((limit.limit / 1_000) * cost.share))
}

export type Step =
  | { readonly kind: 'check'; readonly gap: Gap; readonly cost: Cost }
  | { readonly kind: 'refund'; readonly gap: Gap; readonly cost: Cost; readonly which: number | null }
  | { readonly kind: 'reset'; readonly gap: Gap }
  | { readonly kind: 'limit'; readonly gap: Gap; readonly percent: number }

export const checkStep: fc.Arbitrary<Step> = fc.record({ kind: fc.constant('check' as const), gap, cost })

/** The life of a key: mostly requests, now and then what operators and handlers do. */
export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: checkStep },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('refund' as const),
      gap,
      cost,
      which: fc.option(fc.nat({ max: 30 }), { nil: null }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reset' as const), gap }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('limit' as const),
      gap,
      percent: fc.integer({ min: 1, max: 300 }),
    }),
  },
)

/** Scales a limit as a multiplier or an override does. */
export function scaled<L extends Limit>(limit: L, percent: number): L {
  const scaledLimit = Math.min(MAX_UNITS, Math.max(1, Math.floor((limit.limit / 100) * percent)))
  return { ...limit, limit: scaledLimit }
}

/** A realistic time: whole microseconds around 2023 and later. */
export const startUs = fc.integer({ min: 1_700_000_000_000_000, max: 1_900_000_000_000_000 })
