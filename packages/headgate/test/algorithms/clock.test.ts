/** R15: the effects of a clock that jumps, and that forgetting a state in time changes nothing. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.js'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { isCounter, isTokenBucket } from '../support/limit-kinds.js'
import {
  after,
  bucketsLimit,
  cost,
  costUnits,
  counterLimit,
  gap,
  logLimit,
  periodUs,
  startUs,
  tokenLimit,
} from './arbitraries.js'
import { algorithmOf, live, request } from './driver.js'

const life = fc.array(fc.record({ gap, cost }), { minLength: 1, maxLength: 25 })
const shares = fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 990, max: 1_010 }))
const nudge = fc.integer({ min: -2, max: 2 })

const windowed: [string, fc.Arbitrary<Limit>][] = [
  ['sliding-window log', logLimit],
  ['sliding-window counter', counterLimit],
  ['sliding-window counter in buckets', bucketsLimit],
]
const all: [string, fc.Arbitrary<Limit>][] = [...windowed, ['token bucket', tokenLimit]]

/** Returns the longest a single unit may be denied: two windows, or the time an empty bucket takes to fill. */
function longestWaitUs(limit: Limit): number {
  return isTokenBucket(limit) ? periodUs(limit) : 2 * periodUs(limit)
}

describe('a clock that steps back', () => {
  it.each(all)(
    '%s: a clock that steps back never denies one unit for longer than its bound, whatever the step',
    (_, limits) => {
      fc.assert(
        fc.property(limits, startUs, life, shares, nudge, (limit, startUs, requests, share, nudge) => {
          const { state, nowUs } = live(limit, startUs, requests)
          const backUs = Math.floor((periodUs(limit) / 1_000) * share) + nudge
          const steppedUs = Math.max(0, nowUs - Math.max(0, backUs))
          const waitUs = algorithmOf(limit).waitUs(limit, state, 1, steppedUs)
          expect(waitUs).toBeLessThanOrEqual(longestWaitUs(limit))
          if (waitUs === 0) return
          // The wait includes the catch-up, and it is exact.
          expect(algorithmOf(limit).waitUs(limit, state, 1, steppedUs + waitUs)).toBe(0)
          expect(algorithmOf(limit).waitUs(limit, state, 1, steppedUs + waitUs - 1)).toBe(1)
        }),
        { numRuns: 6_000 },
      )
    },
  )

  it.each(all)(
    '%s: a clock that steps back is not a way to get more while the state is believed',
    (_, limits) => {
      fc.assert(
        fc.property(limits, startUs, life, fc.nat({ max: 500 }), (limit, startUs, requests, share) => {
          const { state, nowUs } = live(limit, startUs, requests)
          const algorithm = algorithmOf(limit)
          const before = algorithm.remaining(limit, state, nowUs)
          const backUs = Math.floor((periodUs(limit) / 1_000) * share)
          const after = algorithm.remaining(limit, state, nowUs - backUs)
          // Either the state still counts, and then nothing came back, or it is forgotten as a whole.
          expect(after <= before || after === limit.limit).toBe(true)
        }),
        { numRuns: 4_000 },
      )
    },
  )

  // Found by search. The difference window − window ÷ limit is rounded in doubles, here to a whole microsecond
  // more.
  it.each([
    [3 * 86_400_000_000, 188_086],
    [25_716_374_981_000, 4_238],
  ])(
    'counter of window %i µs, limit %i: two windows are not exceeded by one microsecond',
    (windowUs, units) => {
      const limit = { ...slidingWindowCounter({ limit: units, window: '1d' }), windowUs }
      const startUs = windowUs * 60
      const state = algorithmOf(limit).empty()
      request(limit, state, units, startUs)
      const edgeUs = Math.floor(windowUs - windowUs / units)
      for (const backUs of [edgeUs - 1, edgeUs, edgeUs + 1]) {
        const waitUs = algorithmOf(limit).waitUs(limit, state, 1, startUs - backUs)
        expect(waitUs).toBeLessThanOrEqual(2 * windowUs)
      }
    },
  )

  it('buckets that do not divide their window hold the same bound', () => {
    const limit = slidingWindowCounter({ limit: 1, window: '1.001s', buckets: 1_000 })
    const startUs = 2_002_000_000
    const state = algorithmOf(limit).empty()
    request(limit, state, 1, startUs)
    for (let backUs = 0; backUs < 3_000_000; backUs += 500) {
      const waitUs = algorithmOf(limit).waitUs(limit, state, 1, startUs - backUs)
      expect(waitUs).toBeLessThanOrEqual(2 * limit.windowUs)
    }
  })
})

describe('a clock that steps', () => {
  const steps = fc.array(
    fc.record({
      gap,
      cost,
      // Now and then the clock jumps by up to three periods either way.
      jump: fc.oneof(
        { weight: 6, arbitrary: fc.constant(0) },
        { weight: 1, arbitrary: fc.integer({ min: -3_000, max: 3_000 }) },
      ),
    }),
    { maxLength: 40 },
  )

  it.each(all)('%s: a clock that steps gives at most one extra burst a step, in true time', (_, limits) => {
    fc.assert(
      fc.property(limits, steps, (limit, life) => {
        const state = algorithmOf(limit).empty()
        const periodOf = periodUs(limit)
        let trueUs = 1_700_000_000_000_000
        let offsetUs = 0
        let jumps = 0
        const admissions: { trueUs: number; units: number; jumps: number }[] = []
        for (const { gap, cost, jump } of life) {
          trueUs = after(trueUs, limit, gap)
          if (jump !== 0) jumps++
          offsetUs += Math.floor((periodOf / 1_000) * jump)
          const nowUs = Math.max(0, trueUs + offsetUs)
          const units = costUnits(limit, cost)
          if (request(limit, state, units, nowUs).chargedAtUs === null) continue
          admissions.push({ trueUs, units, jumps })
          expectWithinBursts(limit, admissions)
        }
      }),
      { numRuns: 3_000 },
    )
  })

  /**
   * Compares the net charges of the last window, or of every interval of a bucket, with one burst for each jump
   * inside it.
   */
  function expectWithinBursts(
    limit: Limit,
    admissions: readonly { trueUs: number; units: number; jumps: number }[],
  ): void {
    const last = admissions.at(-1) as { trueUs: number; jumps: number }
    const burst = isCounter(limit) ? 2 * limit.limit : limit.limit
    let sum = 0
    for (const { trueUs, units, jumps } of admissions.toReversed()) {
      const elapsedUs = last.trueUs - trueUs
      if (!isTokenBucket(limit) && elapsedUs >= periodUs(limit)) break
      sum += units
      const bursts = 1 + last.jumps - jumps
      const refilled = isTokenBucket(limit) ? (elapsedUs * limit.refillPerSecond) / 1e6 : 0
      expect(sum).toBeLessThanOrEqual((burst * bursts + refilled) * (1 + 2 ** -50) + 1e-6)
    }
  }

  it('a step forward by any δ gives a bucket rate × δ and never more than its capacity', () => {
    const limit = tokenBucket({ capacity: 10, refillPerSecond: 2 })
    const state = algorithmOf(limit).empty()
    const nowUs = 1_700_000_000_000_000
    request(limit, state, 10, nowUs)
    expect(algorithmOf(limit).remaining(limit, state, nowUs + 1_500_000)).toBe(3)
    expect(algorithmOf(limit).remaining(limit, state, nowUs * 2)).toBe(10)
  })
})

describe('a state that is forgotten when it may be', () => {
  it.each(all)('%s: a state that is forgotten when it may be changes no verdict', (_, limits) => {
    const later = fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 10_000_000 }))
    fc.assert(
      fc.property(limits, startUs, life, later, cost, (limit, startUs, requests, laterUs, cost) => {
        const algorithm = algorithmOf(limit)
        const { state, nowUs } = live(limit, startUs, requests)
        const forgetUs = Math.ceil(nowUs + algorithm.keepForUs(limit, state, nowUs)) + laterUs
        const units = costUnits(limit, cost)
        for (const asked of [0, 1, units, limit.limit]) {
          const kept = algorithm.waitUs(limit, state, asked, forgetUs)
          expect(kept).toBe(algorithm.waitUs(limit, algorithm.empty(), asked, forgetUs))
        }
        expect(algorithm.remaining(limit, state, forgetUs)).toBe(limit.limit)
        expect(algorithm.resetAfterUs(limit, state, forgetUs)).toBe(0)
      }),
      { numRuns: 5_000 },
    )
  })

  it.each(all)(
    '%s: a forgotten state changes no verdict after the clock stepped back before it was asked how long',
    (_, limits) => {
      fc.assert(
        fc.property(limits, startUs, life, shares, (limit, startUs, requests, share) => {
          const algorithm = algorithmOf(limit)
          const { state, nowUs } = live(limit, startUs, requests)
          const steppedUs = Math.max(0, nowUs - Math.floor((periodUs(limit) / 1_000) * share))
          const forgetUs = Math.ceil(steppedUs + algorithm.keepForUs(limit, state, steppedUs))
          expect(algorithm.remaining(limit, state, forgetUs)).toBe(limit.limit)
          expect(algorithm.waitUs(limit, state, limit.limit, forgetUs)).toBe(0)
        }),
        { numRuns: 4_000 },
      )
    },
  )
})
