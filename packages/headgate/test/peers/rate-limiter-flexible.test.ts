/**
 * What users of rate-limiter-flexible rely on, from its documentation: every case holds with its limiters, and with ours
 * in memory and on Redis, called as the page about it says.
 */
import { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, RateLimiterUnion } from 'rate-limiter-flexible'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter, type Decision, slidingWindowLog } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const onEnd: (() => unknown)[] = []
afterEach(async () => {
  for (const end of onEnd.splice(0).reverse()) await end()
})

interface Consumed {
  readonly allowed: boolean
  readonly remaining: number
  /** Until the next point is back, for a denial; until all are back, for ours. */
  readonly waitMs: number
}

/** The calls of the page's table. */
interface Points {
  consume(key: string, points?: number): Promise<Consumed>
  /** Points left to a key; null for one that has consumed nothing. */
  left(key: string): Promise<number | null>
  reward(key: string, points: number): Promise<void>
  penalty(key: string, points: number): Promise<void>
  delete(key: string): Promise<void>
}

interface Given {
  readonly points: number
  readonly duration: number
  /** A second limit, consumed together with the first. */
  readonly also?: { readonly points: number; readonly duration: number }
}

type Flexible = RateLimiterMemory | RateLimiterRedis

let prefixes = 0

function theirs(make: (given: { points: number; duration: number; keyPrefix: string }) => Flexible) {
  return ({ points, duration, also }: Given): Points => {
    const first = make({ points, duration, keyPrefix: `theirs-${prefixes++}` })
    const second = also && make({ ...also, keyPrefix: `theirs-${prefixes++}` })
    const union = second && new RateLimiterUnion(first, second)
    const consumed = (allowed: boolean, found: unknown): Consumed => {
      if (found instanceof Error) throw found
      const all =
        found instanceof RateLimiterRes ? [found] : Object.values(found as Record<string, RateLimiterRes>)
      return {
        allowed,
        remaining: Math.min(...all.map(({ remainingPoints }) => remainingPoints)),
        waitMs: Math.max(...all.map(({ msBeforeNext }) => msBeforeNext)),
      }
    }
    return {
      consume: (key, taken = 1) =>
        (union ?? first).consume(key, taken).then(
          found => consumed(true, found),
          found => consumed(false, found),
        ),
      left: async key => (await first.get(key))?.remainingPoints ?? null,
      reward: async (key, given) => void (await first.reward(key, given)),
      penalty: async (key, taken) => void (await first.penalty(key, taken)),
      delete: async key => void (await first.delete(key)),
    }
  }
}

function ours(isShared: boolean) {
  return ({ points, duration, also }: Given): Points => {
    const limits = [{ points, duration }, ...(also ? [also] : [])]
    const limiter = createLimiter({
      ...(isShared && {
        store: redisStore(new Redis(redis.url, { lazyConnect: true }), {
          prefix: `ours-${prefixes++}`,
          deadlineMs: 5_000,
          connectTimeoutMs: 5_000,
        }),
      }),
      policies: {
        points: limits.map(({ points, duration }) => slidingWindowLog({ limit: points, window: duration })),
      },
    })
    onEnd.push(() => limiter.close())
    const policy = { policy: 'points' } as const
    const last = new Map<string, Decision>()
    return {
      async consume(key, cost = 1) {
        const decision = await limiter.check(`user:${key}`, { ...policy, cost })
        const { allowed, remaining, retryAfterMs, resetAfterMs } = decision
        if (allowed) last.set(key, decision)
        return {
          allowed,
          remaining,
          waitMs: allowed ? resetAfterMs : (retryAfterMs ?? Number.POSITIVE_INFINITY),
        }
      },
      async left(key) {
        const { remaining, limit } = await limiter.peek(`user:${key}`, policy)
        return remaining === limit ? null : remaining
      },
      reward: async (key, units) => void (await limiter.refund(last.get(key) as Decision, units)),
      penalty: async (key, cost) => void (await limiter.check(`user:${key}`, { ...policy, cost })),
      delete: key => limiter.reset(`user:${key}`, policy),
    }
  }
}

const onRedis = theirs(given => {
  const storeClient = new Redis(redis.url)
  onEnd.push(() => storeClient.disconnect())
  return new RateLimiterRedis({ storeClient, ...given })
})

const PEERS: readonly [string, (given: Given) => Points][] = [
  ['its own in memory', theirs(given => new RateLimiterMemory(given))],
  ['its own on Redis', onRedis],
  ['ours in memory', ours(false)],
  ['ours on Redis', ours(true)],
]

describe.each(PEERS)('rate-limiter-flexible: %s', (_, make) => {
  it('consumes points until none are left, and tells how many are', async () => {
    const points = make({ points: 2, duration: 60 })
    const found = [await points.consume('a'), await points.consume('a'), await points.consume('a')]
    expect(found.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 1],
      [true, 0],
      [false, 0],
    ])
  })

  it('tells how long to wait, never longer than the duration', async () => {
    const points = make({ points: 1, duration: 60 })
    for (const { waitMs } of [await points.consume('a'), await points.consume('a')]) {
      expect(waitMs).toBeGreaterThan(30_000)
      expect(waitMs).toBeLessThanOrEqual(60_000)
    }
  })

  it('consumes several points at once', async () => {
    const points = make({ points: 5, duration: 60 })
    expect(await points.consume('a', 3)).toMatchObject({ allowed: true, remaining: 2 })
    expect(await points.consume('a', 2)).toMatchObject({ allowed: true, remaining: 0 })
    expect(await points.consume('a')).toMatchObject({ allowed: false })
  })

  it('denies more points than there are', async () => {
    expect(await make({ points: 5, duration: 60 }).consume('a', 6)).toMatchObject({ allowed: false })
  })

  it('denies everything where there are none', async () => {
    expect(await make({ points: 0, duration: 60 }).consume('a')).toMatchObject({
      allowed: false,
      remaining: 0,
    })
  })

  it('keeps the points of keys apart, whatever characters they are made of', async () => {
    const points = make({ points: 1, duration: 60 })
    for (const key of ['a', 'b', 'a:b', 'a b', '{a}', 'ä', '192.0.2.1', '2001:db8::1', 'x'.repeat(300)])
      expect([key, (await points.consume(key)).allowed]).toEqual([key, true])
    expect((await points.consume('{a}')).allowed).toBe(false)
  })

  it('keeps the points of limiters with names of their own apart', async () => {
    const [one, other] = [make({ points: 1, duration: 60 }), make({ points: 1, duration: 60 })]
    expect([(await one.consume('a')).allowed, (await other.consume('a')).allowed]).toEqual([true, true])
    expect([(await one.consume('a')).allowed, (await other.consume('a')).allowed]).toEqual([false, false])
  })

  it('tells what is left without consuming', async () => {
    const points = make({ points: 3, duration: 60 })
    expect(await points.left('a')).toBeNull()
    await points.consume('a')
    expect([await points.left('a'), await points.left('a'), await points.left('b')]).toEqual([2, 2, null])
  })

  it('gives points back', async () => {
    const points = make({ points: 3, duration: 60 })
    await points.consume('a', 3)
    await points.reward('a', 2)
    expect(await points.left('a')).toBe(2)
    expect([(await points.consume('a', 2)).allowed, (await points.consume('a')).allowed]).toEqual([
      true,
      false,
    ])
  })

  it('takes points away', async () => {
    const points = make({ points: 3, duration: 60 })
    await points.consume('a')
    await points.penalty('a', 2)
    expect(await points.left('a')).toBe(0)
    expect((await points.consume('a')).allowed).toBe(false)
  })

  it('starts a key anew', async () => {
    const points = make({ points: 1, duration: 60 })
    await points.consume('a')
    await points.delete('a')
    expect(await points.left('a')).toBeNull()
    expect((await points.consume('a')).allowed).toBe(true)
    await points.delete('never-seen')
  })

  it('has all points again after the duration', async () => {
    const points = make({ points: 2, duration: 1 })
    await points.consume('a', 2)
    await new Promise(resolve => setTimeout(resolve, 1_050))
    expect(await points.consume('a', 2)).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('admits no more than there are of calls at once', async () => {
    const points = make({ points: 5, duration: 60 })
    const found = await Promise.all(Array.from({ length: 20 }, () => points.consume('a')))
    expect(found.filter(({ allowed }) => allowed)).toHaveLength(5)
  })

  it('denies where one of two limits has no points', async () => {
    const points = make({ points: 5, duration: 60, also: { points: 2, duration: 3_600 } })
    expect([(await points.consume('a')).allowed, (await points.consume('a')).allowed]).toEqual([true, true])
    expect(await points.consume('a')).toMatchObject({ allowed: false, remaining: 0 })
  })
})

/** The sentences of the page that say what changes. */
describe('what the page says is different', () => {
  const [, [, theirOwn], , [, ourOwn]] = PEERS as [
    (typeof PEERS)[0],
    (typeof PEERS)[0],
    (typeof PEERS)[0],
    (typeof PEERS)[0],
  ]

  it('a denied request costs nothing; there, the counter keeps counting', async () => {
    const leftAfterDenial = async (make: (given: Given) => Points) => {
      const points = make({ points: 5, duration: 60 })
      await points.consume('a', 3)
      await points.consume('a', 4)
      return points.left('a')
    }
    expect([await leftAfterDenial(theirOwn), await leftAfterDenial(ourOwn)]).toEqual([0, 2])
  })

  it('of two limits all are consumed or none; there, the other one is', async () => {
    const leftOfFirst = async (make: (given: Given) => Points) => {
      const points = make({ points: 5, duration: 60, also: { points: 1, duration: 3_600 } })
      for (let time = 0; time < 4; time++) await points.consume('a')
      return points.left('a')
    }
    expect(await leftOfFirst(theirOwn)).toBe(1)
    // What is left is told of the limit that binds.
    expect(await leftOfFirst(ourOwn)).toBe(0)
  })

  it('a key is never kept for longer than it counts', async () => {
    const points = ourOwn({ points: 2, duration: 60 })
    await points.consume('a')
    const client = new Redis(redis.url)
    onEnd.push(() => client.disconnect())
    const keys = (await client.keys('ours-*')).filter(key => key.includes('{user:a}'))
    expect(keys.length).toBeGreaterThan(0)
    for (const key of keys) {
      const ttlMs = await client.pttl(key)
      expect([ttlMs > 0, ttlMs <= 4_100_000]).toEqual([true, true])
    }
  })
})
