/** Random lives of a key, checked against an oracle that remembers every admission and never rounds. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.js'
import { NEVER } from '../../src/algorithms/algorithm.js'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import type { TokenBucketLimit } from '../../src/algorithms/token-bucket.js'
import {
  after,
  bucketsLimit,
  checkStep,
  cost,
  costUnits,
  counterLimit,
  gap,
  logLimit,
  type Step,
  scaled,
  startUs,
  step,
  tokenLimit,
} from './arbitraries.js'
import { algorithmOf, request } from './driver.js'
import { BucketsOracle, CounterOracle, ExactBucket, exactRate, LogOracle, type Oracle } from './oracle.js'

const lives = fc.array(step, { maxLength: 40 })
const requests = fc.array(checkStep, { maxLength: 60 })
const bursts = fc.array(fc.record({ gap, cost }), { maxLength: 40 })

/** Plays the steps on the engine and on the oracle; `judge` sees the limit in force after every admission. */
function liveBoth<L extends Limit>(
  original: L,
  oracle: Oracle,
  life: { readonly startUs: number; readonly steps: readonly Step[] },
  judge: (limit: L, nowUs: number) => void,
): void {
  let limit = original
  const algorithm = algorithmOf(limit)
  let state = algorithm.empty()
  const charges: number[] = []
  let nowUs = life.startUs
  for (const step of life.steps) {
    nowUs = after(nowUs, original, step.gap)
    if (step.kind === 'limit') {
      limit = scaled(original, step.percent)
    } else if (step.kind === 'reset') {
      state = algorithm.empty()
      oracle.reset()
    } else if (step.kind === 'refund') {
      const chargedAtUs = step.which === null ? null : (charges[step.which % charges.length] ?? null)
      const units = costUnits(limit, step.cost)
      const given = algorithm.refund(limit, state, units, chargedAtUs, nowUs)
      expect(given).toBe(oracle.refund(units, chargedAtUs, nowUs))
    } else {
      const cost = costUnits(limit, step.cost)
      const fits = oracle.used(nowUs) + BigInt(cost) <= BigInt(limit.limit)
      const { waitUs, chargedAtUs } = request(limit, state, cost, nowUs)
      expect(waitUs === 0).toBe(fits)
      expect(waitUs === NEVER).toBe(cost > limit.limit)
      if (chargedAtUs !== null) {
        expect(chargedAtUs).toBe(nowUs)
        charges.push(chargedAtUs)
        oracle.admit(cost, nowUs)
        judge(limit, nowUs)
      }
    }
    const used = oracle.used(nowUs)
    const left = BigInt(limit.limit) - used
    expect(algorithm.remaining(limit, state, nowUs)).toBe(left > 0n ? Number(left) : 0)
    expect(algorithm.resetAfterUs(limit, state, nowUs) === 0).toBe(used === 0n)
  }
}

describe('sliding-window log', () => {
  it('the log decides as an exact record of all requests would, and never admits more than the limit in any window', () => {
    fc.assert(
      fc.property(logLimit, startUs, lives, (limit, startUs, steps) => {
        const oracle = new LogOracle(limit.windowUs)
        liveBoth(limit, oracle, { startUs, steps }, (limit, nowUs) => {
          expect(oracle.admittedWithin(limit.windowUs, nowUs)).toBeLessThanOrEqual(BigInt(limit.limit))
        })
      }),
      { numRuns: 3_000 },
    )
  })
})

describe('sliding-window counter', () => {
  it('the counter decides by the exact interpolation, rounded down', () => {
    fc.assert(
      fc.property(counterLimit, startUs, lives, (limit, startUs, steps) => {
        const oracle = new CounterOracle(limit.windowUs)
        liveBoth(limit, oracle, { startUs, steps }, (limit, nowUs) => {
          expect(oracle.inAlignedWindow(nowUs)).toBeLessThanOrEqual(BigInt(limit.limit))
        })
      }),
      { numRuns: 3_000 },
    )
  })

  it('the counter never admits more than twice the limit in any window', () => {
    fc.assert(
      fc.property(counterLimit, startUs, requests, (limit, startUs, steps) => {
        const oracle = new CounterOracle(limit.windowUs)
        liveBoth(limit, oracle, { startUs, steps }, (limit, nowUs) => {
          const bound = 2n * BigInt(limit.limit)
          expect(oracle.admittedWithin(limit.windowUs, nowUs)).toBeLessThanOrEqual(bound)
        })
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([10, 100, 1_000])('the counter attains its bound: 2 × %i', limitUnits => {
    const limit = { ...counter(60_000_000), limit: limitUnits }
    const algorithm = algorithmOf(limit)
    const state = algorithm.empty()
    // Everything at the very end of one window, then one at a time as soon as each fits.
    let nowUs = 60_000_000 * 1_000 - 1
    const first = nowUs
    request(limit, state, limitUnits, nowUs)
    let admitted = limitUnits
    for (;;) {
      nowUs += algorithm.waitUs(limit, state, 1, nowUs)
      if (nowUs - first >= limit.windowUs) break
      request(limit, state, 1, nowUs)
      admitted++
    }
    expect(admitted).toBe(2 * limitUnits)
  })
})

describe('sliding-window counter in buckets', () => {
  it('the counter in buckets decides as an exact record of all requests would, and keeps the limit in any window', () => {
    fc.assert(
      fc.property(bucketsLimit, startUs, lives, (limit, startUs, steps) => {
        const oracle = new BucketsOracle(limit.windowUs, limit.buckets)
        liveBoth(limit, oracle, { startUs, steps }, (limit, nowUs) => {
          expect(oracle.admittedWithin(limit.windowUs, nowUs)).toBeLessThanOrEqual(BigInt(limit.limit))
        })
      }),
      { numRuns: 3_000 },
    )
  })

  it('the counter in buckets counts nothing longer than window × (1 + 1/B), plus a millisecond a part where B does not divide it', () => {
    fc.assert(
      fc.property(bucketsLimit, startUs, (limit, nowUs) => {
        const algorithm = algorithmOf(limit)
        const state = algorithm.empty()
        request(limit, state, limit.limit, nowUs)
        const heldUs = BigInt(algorithm.waitUs(limit, state, limit.limit, nowUs))
        const parts = BigInt(limit.buckets) + 1n
        const windowUs = BigInt(limit.windowUs)
        const slackUs = (windowUs / 1_000n) % BigInt(limit.buckets) === 0n ? 0n : parts * 1_000n
        expect(heldUs * BigInt(limit.buckets)).toBeLessThanOrEqual(
          windowUs * parts + slackUs * BigInt(limit.buckets),
        )
        expect(heldUs).toBeGreaterThan(windowUs - 1n)
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('token bucket', () => {
  /**
   * The rate is a double, and elapsed × rate is rounded once, to nearest: the refill of an interval may be too
   * large by one part in 2^52 of itself, never by more. That is the only slack.
   */
  function allowed(limit: TokenBucketLimit, elapsedUs: bigint): bigint {
    const { numerator, denominator } = exactRate(limit.refillPerSecond)
    const refilled = (elapsedUs * numerator + denominator - 1n) / denominator
    return BigInt(limit.limit) * 1_000_000n + refilled + refilled / 2n ** 52n + 1n
  }

  it('a bucket never admits more than capacity + rate × τ in any τ', () => {
    fc.assert(
      fc.property(tokenLimit, startUs, bursts, (limit, startUs, steps) => {
        const state = algorithmOf(limit).empty()
        const admissions: { atUs: bigint; micro: bigint }[] = []
        let nowUs = startUs
        for (const { gap, cost } of steps) {
          nowUs = after(nowUs, limit, gap)
          const units = costUnits(limit, cost)
          if (request(limit, state, units, nowUs).chargedAtUs === null) continue
          admissions.push({ atUs: BigInt(nowUs), micro: BigInt(units) * 1_000_000n })
          let sum = 0n
          for (const { atUs, micro } of admissions.toReversed()) {
            sum += micro
            expect(sum).toBeLessThanOrEqual(allowed(limit, BigInt(nowUs) - atUs))
          }
        }
      }),
      { numRuns: 4_000 },
    )
  })

  it('a bucket is never stricter than exact refill by more than a micro-token for each write', () => {
    fc.assert(
      fc.property(tokenLimit, startUs, fc.array(step, { maxLength: 40 }), (limit, startUs, steps) => {
        const algorithm = algorithmOf(limit)
        const state = algorithm.empty()
        const exact = new ExactBucket(limit.refillPerSecond)
        let writes = 1n
        let nowUs = startUs
        for (const step of steps) {
          nowUs = after(nowUs, limit, step.gap)
          if (step.kind === 'refund') {
            algorithm.refund(limit, state, costUnits(limit, step.cost), null, nowUs)
            exact.refund(costUnits(limit, step.cost), nowUs)
            writes++
          } else if (step.kind === 'check') {
            const cost = costUnits(limit, step.cost)
            const room = BigInt(limit.limit - cost) * 1_000_000n
            const missing = exact.missingMicro(nowUs)
            const { waitUs } = request(limit, state, cost, nowUs)
            if (waitUs === 0) {
              exact.admit(cost, nowUs)
              writes++
            } else expect(missing).toBeGreaterThan(room - writes - missing / 2n ** 52n)
          }
        }
      }),
      { numRuns: 3_000 },
    )
  })
})

function counter(windowUs: number) {
  return { ...slidingWindowCounter({ limit: 1, window: '1m' }), windowUs }
}
