import fc from 'fast-check'
import { createClient } from 'redis'
import { describe, expect, it } from 'vitest'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { askStore } from '../../src/store/ask-store.ts'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { RegionLimits, type RegionShare } from '../../src/store/remote/region-share.js'
import { directRedisStore } from '../support/direct-store.ts'
import { isTokenBucket } from '../support/limit-kinds.ts'
import { startRedis } from '../support/redis-process.ts'
import { all, check } from './questions.ts'
import { singleClient } from './topologies.ts'

/** Whole parts that add up to the whole. */
const division = fc
  .array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 })
  .map(parts => ({ parts, of: parts.reduce((sum, part) => sum + part, 0) }))

describe('the shares of several regions', () => {
  it('the shares of several regions never add up to more than the limit', () => {
    fc.assert(
      fc.property(division, fc.integer({ min: 0, max: 2 ** 32 - 1 }), ({ parts, of }, limit) => {
        for (const whole of [
          slidingWindowLog({ limit, window: '1m' }),
          slidingWindowCounter({ limit, window: '1m' }),
        ]) {
          const units = parts.map(part => new RegionLimits({ part, of }).limitOf(whole).limit)
          const sum = units.reduce((total, each) => total + each, 0)
          expect(sum).toBeLessThanOrEqual(limit)
          // Rounding costs less than one unit per region.
          expect(sum).toBeGreaterThan(limit - parts.length)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it('the shares of several regions never add up to more than the rate of a bucket', () => {
    const rate = fc.double({ min: 0.001, max: 1_000_000, noNaN: true })
    fc.assert(
      fc.property(division, rate, ({ parts, of }, refillPerSecond) => {
        const whole = tokenBucket({ capacity: 1_000, refillPerSecond })
        const rates = parts.map(part => {
          const shared = new RegionLimits({ part, of }).limitOf(whole)
          return isTokenBucket(shared) ? shared.refillPerSecond : Number.NaN
        })
        const sum = rates.reduce((total, each) => total + each, 0)
        expect(sum).toBeLessThanOrEqual(refillPerSecond)
        expect(sum).toBeGreaterThan(refillPerSecond * (1 - 1e-12))
      }),
      { numRuns: 2_000 },
    )
  })

  it('a share changes nothing but the numbers: the state stays where it was', () => {
    const limit = slidingWindowLog({ limit: 100, window: '1m' })
    const { limit: units, ...rest } = new RegionLimits({ part: 1, of: 3 }).limitOf(limit)
    expect(units).toBe(33)
    expect(rest).toEqual({ ...limit, limit: undefined, ...rest })
    expect(rest.id).toBe(limit.id)
  })

  it.each([
    { part: 0, of: 1 },
    { part: 2, of: 1 },
    { part: 0.5, of: 1 },
    { part: 1, of: Number.NaN },
    { part: 1, of: 2_000_000 },
  ])('shares are rejected when they are not a part of a whole: %o', (share: RegionShare) => {
    expect(() => redisStore(createClient(), { share })).toThrow(/^share: expected whole numbers/)
  })

  it('the shares of several regions admit the limit together, each from a Redis of its own', async () => {
    const parts = [1, 2, 4]
    const servers = await Promise.all(parts.map(() => startRedis()))
    const limit = slidingWindowLog({ limit: 50, window: '1h' })
    const question = all(check('user:1', limit))
    const admitted: number[] = []
    for (const [index, part] of parts.entries()) {
      const client = singleClient(servers[index]?.port ?? 0)('node-redis').client
      const store = directRedisStore(client, { deadlineMs: 5_000, share: { part, of: 7 } })
      const answers = await Promise.all(Array.from({ length: 60 }, () => askStore(store, question)))
      admitted.push(answers.filter(({ charged }) => charged === 0).length)
      expect((await askStore(store, question, true)).verdicts[0]?.[0]).toMatchObject({
        allowed: false,
        remaining: 0,
      })
      await store.close()
    }
    await Promise.all(servers.map(server => server.stop()))
    expect(admitted).toEqual([7, 14, 28])
  })
})
