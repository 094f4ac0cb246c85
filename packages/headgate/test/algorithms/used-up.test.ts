/** A state that stands for one of which only the end is known: never more left than that one, and all of it soon after. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.js'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { isBuckets, isCounter, isTokenBucket } from '../support/limit-kinds.js'
import { algorithmOf } from './driver.js'

const LIMITS: readonly Limit[] = [
  slidingWindowLog({ limit: 5, window: '1s' }),
  slidingWindowCounter({ limit: 5, window: '1s' }),
  slidingWindowCounter({ limit: 7, window: '1s', buckets: 3 }),
  tokenBucket({ capacity: 5, refillPerSecond: 7 }),
  tokenBucket({ capacity: 3, refillPerSecond: 1 / 3, name: 'slow' }),
]
const START_US = 1_800_000_000_000_000
const gapUs = fc.integer({ min: 0, max: 900_000 })

/** How much longer a state may stand for another: what is kept by windows or parts of one ends with them, tokens come whole. */
function roundedUpUs(limit: Limit): number {
  if (isCounter(limit)) return limit.windowUs
  if (isBuckets(limit)) return Math.ceil(limit.windowUs / 1_000 / limit.buckets) * 1_000
  return isTokenBucket(limit) ? 1 : 0
}

it.each(LIMITS)('a state that stands for a forgotten one never has more left than it: $id', limit => {
  const algorithm = algorithmOf(limit)
  let comparisons = 0
  fc.assert(
    fc.property(
      fc.array(fc.record({ gapUs, cost: fc.integer({ min: 1, max: 5 }) }), { maxLength: 12 }),
      fc.array(gapUs, { minLength: 1, maxLength: 8 }),
      fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 10_000_000 })),
      (charges, laterUs, tooLateUs) => {
        const state = algorithm.empty()
        let nowUs = START_US
        for (const { gapUs, cost } of charges) {
          nowUs += gapUs
          if (algorithm.waitUs(limit, state, cost, nowUs) === 0) algorithm.charge(limit, state, cost, nowUs)
        }
        const left = algorithm.remaining(limit, state, nowUs)
        if (left > 0) algorithm.charge(limit, state, left, nowUs)
        const untilUs = nowUs + algorithm.resetAfterUs(limit, state, nowUs)
        for (const us of laterUs) {
          nowUs += us
          if (nowUs >= untilUs) break
          const stand = algorithm.usedUp(limit, untilUs + tooLateUs, nowUs)
          const leftOfStand = algorithm.remaining(limit, stand, nowUs)
          expect(leftOfStand).toBeLessThanOrEqual(algorithm.remaining(limit, state, nowUs))
          const wait = algorithm.waitUs(limit, stand, 1, nowUs)
          expect(wait).toBeGreaterThanOrEqual(algorithm.waitUs(limit, state, 1, nowUs))
          expect(algorithm.resetAfterUs(limit, stand, nowUs)).toBeLessThanOrEqual(
            algorithm.keepForUs(limit, stand, nowUs),
          )
          const lastsUs = algorithm.resetAfterUs(limit, stand, nowUs)
          expect(lastsUs).toBeLessThanOrEqual(untilUs + tooLateUs - nowUs + roundedUpUs(limit))
          comparisons++
        }
      },
    ),
    { numRuns: 2_000 },
  )
  expect(comparisons).toBeGreaterThan(500)
})
