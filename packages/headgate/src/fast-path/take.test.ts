/** `take` is a second way to the same answer; this compares the two. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Admission } from '../engine/algorithm.js'
import { algorithmOf, type State } from '../engine/algorithms.js'
import { decideAlone } from '../engine/decide.js'
import type { Limit } from '../engine/limit.js'
import { SingleAnswer } from '../engine/single-question.js'
import { slidingWindowCounter, slidingWindowLog, tokenBucket } from '../policy/limits.js'

/** Two limits that share their states: the numbers of a limit may change while it is used. */
type Pair = readonly [Limit, Limit]

const quotas = fc.tuple(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 20 }))
const largeQuotas = fc.tuple(
  fc.integer({ min: 2 ** 20, max: 2 ** 32 - 1 }),
  fc.integer({ min: 2 ** 20, max: 2 ** 32 - 1 }),
)

function pairs<Rest>(
  quotas: fc.Arbitrary<[number, number]>,
  rest: fc.Arbitrary<Rest>,
  make: (limit: number, rest: Rest) => Limit,
): fc.Arbitrary<Pair> {
  return fc
    .tuple(quotas, rest)
    .map(([[one, other], common]) => [make(one, common), make(other, common)] as const)
}

const windowMs = fc.integer({ min: 10, max: 50 })
const counters = pairs(quotas, windowMs, (limit, ms) => slidingWindowCounter({ limit, window: `${ms}ms` }))
const largeCounters = pairs(largeQuotas, fc.integer({ min: 1, max: 366 }), (limit, days) =>
  slidingWindowCounter({ limit, window: `${days}d` }),
)
const counted = fc.record({ ms: windowMs, buckets: fc.integer({ min: 1, max: 10 }) })
const bucketed = pairs(quotas, counted, (limit, { ms, buckets }) =>
  slidingWindowCounter({ limit, window: `${ms}ms`, buckets }),
)
const logs = pairs(quotas, windowMs, (limit, ms) => slidingWindowLog({ limit, window: `${ms}ms` }))
const buckets = pairs(quotas, fc.double({ min: 0.5, max: 5_000, noNaN: true }), (capacity, refillPerSecond) =>
  tokenBucket({ capacity, refillPerSecond }),
)

/** Mostly forwards, sometimes not at all, sometimes back. */
const steps = (longestUs: number) =>
  fc.array(
    fc.record({
      elapsedUs: fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 0, max: longestUs }) },
        { weight: 1, arbitrary: fc.constant(0) },
        { weight: 1, arbitrary: fc.integer({ min: -longestUs, max: 0 }) },
      ),
      which: fc.constantFrom(0 as const, 0 as const, 0 as const, 1 as const),
      cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 25 }), fc.integer({ min: 1, max: 2 ** 31 })),
    }),
    { maxLength: 60 },
  )

interface Step {
  readonly elapsedUs: number
  readonly which: 0 | 1
  readonly cost: number
}

function agree(pair: Pair, history: readonly Step[]): number {
  const algorithm = algorithmOf(pair[0])
  const [one, other]: [State, State] = [algorithm.empty(), algorithm.empty()]
  const into = new Admission()
  let nowUs = 1_800_000_000_000_000
  let latestUs = 0
  let taken = 0
  for (const { elapsedUs, which, cost } of history) {
    nowUs += elapsedUs
    const limit = pair[which]
    const before = structuredClone(one)
    const isTaken = algorithm.take(limit, one, cost, nowUs, into)
    const wanted = decideAlone(algorithm, limit, other, cost, nowUs)
    if (isTaken) {
      taken++
      latestUs = Math.max(latestUs, nowUs)
      expect(new SingleAnswer(into.remaining, 0, into.resetAfterUs, into.nowUs, into.nowUs)).toEqual(wanted)
      expect(one).toEqual(other)
    } else {
      expect(one).toEqual(before)
      expect(wanted.retryAfterUs > 0 || nowUs < latestUs).toBe(true)
      decideAlone(algorithm, limit, one, cost, nowUs)
      if (wanted.retryAfterUs === 0) latestUs = Math.max(latestUs, wanted.chargedAtUs ?? 0)
    }
  }
  return taken
}

describe('taking in one go', () => {
  it.each([
    ['counter', counters, 120_000],
    ['counter of large numbers', largeCounters, 400 * 86_400_000_000],
    ['counter in parts', bucketed, 120_000],
    ['log', logs, 120_000],
    ['token bucket', buckets, 200_000],
  ] as const)('taking in one go answers and writes as step by step: %s', (_, limits, longestUs) => {
    let taken = 0
    fc.assert(
      fc.property(limits, steps(longestUs), (pair, history) => {
        taken += agree(pair, history)
      }),
      { numRuns: 3_000 },
    )
    expect(taken).toBeGreaterThan(4_000)
  })
})
