import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TokenBucketLimit } from '../../src/algorithms/token-bucket.js'
import { tokenBucket, tokenBucketAlgorithm } from '../../src/algorithms/token-bucket.js'
import { algorithmOf } from './driver.js'

const NOW_US = 1_700_000_000_000_000

const bucket = algorithmOf(tokenBucket({ capacity: 1, refillPerSecond: 1 }))

function limitOf(capacity: number, refillPerSecond: number): TokenBucketLimit {
  return { ...tokenBucket({ capacity, refillPerSecond: 1e9 }), refillPerSecond }
}

/** How long a bucket that misses so many micro-tokens takes to fill. */
function refillUs(refillPerSecond: number, micro: number): number {
  const out = { waitUs: 0, remaining: 0, resetAfterUs: 0, chargedAtUs: 0 }
  tokenBucketAlgorithm.wire.charged(limitOf(0, refillPerSecond), -micro, NOW_US, out, 1)
  return out.resetAfterUs
}

describe('the time a refill takes', () => {
  const rate = fc.oneof(
    fc.double({ min: 1e-9, max: 1, noNaN: true }),
    fc.double({ min: 1, max: 4e12, noNaN: true }),
    fc.constantFrom(1 / 3, 0.1, 1 / 60, 4_294_967_295_000, 1e-9, 0.7, 1 / 7),
  )
  const micro = fc.oneof(
    fc.integer({ min: 1, max: 5_000_000 }),
    fc.integer({ min: 1, max: 4_294_967_295_000_000 }),
    fc.integer({ min: 1, max: 4_294_967_295 }).map(tokens => tokens * 1_000_000),
  )

  it('a refill takes the least whole number of microseconds that is enough', () => {
    fc.assert(
      fc.property(rate, micro, (refillPerSecond, micro) => {
        if (micro / refillPerSecond > 2 ** 52) return
        const elapsedUs = refillUs(refillPerSecond, micro)
        if (Math.floor(elapsedUs * refillPerSecond) < micro) throw new Error(`${elapsedUs} is too short`)
        if (Math.floor((elapsedUs - 1) * refillPerSecond) >= micro)
          throw new Error(`${elapsedUs} is too long`)
      }),
      { numRuns: 100_000 },
    )
  })
})

it.each([
  [1e-12, 1_000_000],
  [1e-300, 4_294_967_295_000_000],
  [0, 1],
  [Number.MIN_VALUE, Number.MAX_VALUE],
  [0.1, 2 ** 60],
])(
  'a refill that takes longer than time can be counted is found at once: %d, %d',
  (refillPerSecond, micro) => {
    expect(refillUs(refillPerSecond, micro)).toBeGreaterThan(2 ** 52)
  },
)

describe('a bucket', () => {
  it('a bucket gives its capacity at once and then one token each time one has been refilled', () => {
    const limit = limitOf(5, 0.1)
    const state = bucket.empty()
    expect(bucket.remaining(limit, state, NOW_US)).toBe(5)
    bucket.charge(limit, state, 5, NOW_US)
    expect(bucket.waitUs(limit, state, 1, NOW_US)).toBe(10_000_000)
    expect(bucket.remaining(limit, state, NOW_US + 9_999_999)).toBe(0)
    expect(bucket.remaining(limit, state, NOW_US + 10_000_000)).toBe(1)
    expect(bucket.resetAfterUs(limit, state, NOW_US)).toBe(50_000_000)
  })

  it('a bucket loses less than one token in a million to rounding over a long life of single requests', () => {
    const limit = limitOf(1, 1 / 3)
    const state = bucket.empty()
    let nowUs = NOW_US
    const tokens = 100_000
    for (let count = 0; count < tokens; count++) {
      nowUs += bucket.waitUs(limit, state, 1, nowUs)
      bucket.charge(limit, state, 1, nowUs)
    }
    const exactUs = (tokens - 1) * 3_000_000
    expect(nowUs - NOW_US).toBeGreaterThanOrEqual(exactUs)
    expect(nowUs - NOW_US).toBeLessThanOrEqual(exactUs * (1 + 4e-6))
  })

  it('a bucket made smaller is empty at worst, not in debt, and one made larger owes the same', () => {
    const state = bucket.empty()
    bucket.charge(limitOf(100, 1), state, 80, NOW_US)
    expect(bucket.waitUs(limitOf(10, 1), state, 1, NOW_US)).toBe(1_000_000)
    expect(bucket.remaining(limitOf(200, 1), state, NOW_US)).toBe(120)
  })
})
