/** Law 3: waiting exactly as long as told admits, and a millisecond less does not. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Limit, NEVER } from '../../src/algorithms/algorithm.js'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { isCounter } from '../support/limit-kinds.js'
import {
  bucketsLimit,
  cost,
  costUnits,
  counterLimit,
  gap,
  logLimit,
  MAX_RATE,
  MAX_UNITS,
  startUs,
  tokenLimit,
} from './arbitraries.js'
import { algorithmOf, live, request, type State } from './driver.js'

const life = fc.array(fc.record({ gap, cost }), { minLength: 1, maxLength: 25 })

function expectExactWait(limit: Limit, state: State, cost: number, nowUs: number): void {
  const algorithm = algorithmOf(limit)
  const waitUs = algorithm.waitUs(limit, state, cost, nowUs)
  if (cost > limit.limit) {
    expect(waitUs).toBe(NEVER)
    return
  }
  if (waitUs === 0) return
  expect(Number.isSafeInteger(waitUs)).toBe(true)
  expect(algorithm.waitUs(limit, state, cost, nowUs + waitUs)).toBe(0)
  expect(algorithm.waitUs(limit, state, cost, nowUs + waitUs - 1)).toBe(1)
  const waitMs = Math.ceil(waitUs / 1000)
  expect(algorithm.waitUs(limit, state, cost, nowUs + waitMs * 1000)).toBe(0)
  expect(algorithm.waitUs(limit, state, cost, nowUs + waitMs * 1000 - 1000)).toBeGreaterThan(0)
  // Half way there the answer names the same moment.
  const halfUs = Math.floor(waitUs / 2)
  expect(algorithm.waitUs(limit, state, cost, nowUs + halfUs)).toBe(waitUs - halfUs)
}

describe('waiting as long as told admits, one millisecond less does not', () => {
  it.each([
    ['sliding-window log', logLimit],
    ['sliding-window counter', counterLimit],
    ['sliding-window counter in buckets', bucketsLimit],
    ['token bucket', tokenLimit],
  ] as [string, fc.Arbitrary<Limit>][])(
    '%s: waiting as long as told admits, one millisecond less does not, for random lives over the whole range',
    (_, limits) => {
      fc.assert(
        fc.property(limits, startUs, life, cost, (limit, startUs, requests, cost) => {
          const { state, nowUs } = live(limit, startUs, requests)
          expectExactWait(limit, state, 1, nowUs)
          expectExactWait(limit, state, limit.limit, nowUs)
          expectExactWait(limit, state, costUnits(limit, cost), nowUs)
          expectExactWait(limit, state, limit.limit + 1, nowUs)
        }),
        { numRuns: 5_000 },
      )
    },
  )

  it.each([
    ['sliding-window log', logLimit],
    ['sliding-window counter', counterLimit],
    ['sliding-window counter in buckets', bucketsLimit],
    ['token bucket', tokenLimit],
  ] as [string, fc.Arbitrary<Limit>][])(
    '%s: reset is a wait after which all is free, and the least where nothing fades',
    (_, limits) => {
      fc.assert(
        fc.property(limits, startUs, life, (limit, startUs, requests) => {
          const algorithm = algorithmOf(limit)
          const { state, nowUs } = live(limit, startUs, requests)
          const resetUs = algorithm.resetAfterUs(limit, state, nowUs)
          expect(algorithm.remaining(limit, state, nowUs + resetUs)).toBe(limit.limit)
          expect(algorithm.resetAfterUs(limit, state, nowUs + resetUs)).toBe(0)
          // The last unit of a counter, rounded down, is free before its window is over.
          if (resetUs === 0 || isCounter(limit)) return
          expect(algorithm.resetAfterUs(limit, state, nowUs + resetUs - 1)).toBe(1)
        }),
        { numRuns: 3_000 },
      )
    },
  )

  const nowUs = 1_700_000_000_000_000
  const extremes: readonly Limit[] = [
    slidingWindowLog({ limit: MAX_UNITS, window: '366d' }),
    slidingWindowLog({ limit: 1, window: '1ms' }),
    slidingWindowCounter({ limit: MAX_UNITS, window: '366d' }),
    slidingWindowCounter({ limit: MAX_UNITS, window: '1ms' }),
    slidingWindowCounter({ limit: 1, window: '366d' }),
    slidingWindowCounter({ limit: 3, window: '1.001s' }),
    slidingWindowCounter({ limit: MAX_UNITS, window: '366d', buckets: 1_000 }),
    slidingWindowCounter({ limit: 7, window: '1s', buckets: 999 }),
    tokenBucket({ capacity: MAX_UNITS, refillPerSecond: MAX_RATE }),
    tokenBucket({ capacity: MAX_UNITS, refillPerSecond: 0.954 }),
    tokenBucket({ capacity: 1, refillPerSecond: 2.3e-10 }),
    tokenBucket({ capacity: 1, refillPerSecond: MAX_RATE }),
    tokenBucket({ capacity: 1_000_003, refillPerSecond: 1 / 3 }),
  ]
  it.each(extremes.map(limit => [limit.algorithm.name, limit.limit, limit] as const))(
    'waiting as long as told admits, one millisecond less does not: %s of %i',
    (_name, _units, limit) => {
      const all = { gap: { us: 0 }, cost: { share: 1_000 } }
      const most = { gap: { share: 700 }, cost: { share: 999 } }
      for (const requests of [[all], [most, most, most], [all, most, all]]) {
        const { state, nowUs: endUs } = live(limit, nowUs, requests)
        request(limit, state, limit.limit, endUs)
        for (const cost of [1, 2, Math.ceil(limit.limit / 2), limit.limit - 1, limit.limit]) {
          if (cost > 0 && cost <= limit.limit) expectExactWait(limit, state, cost, endUs)
        }
      }
    },
  )
})
