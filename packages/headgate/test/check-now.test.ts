/**
 * `checkNow` and `requestNow` answer what `check` and `request` do, without a promise where nothing has to be
 * awaited.
 */
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { slidingWindowCounter } from '../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../src/algorithms/token-bucket.js'
import type { Decision } from '../src/decision/decision.js'
import { createLimiter } from '../src/limiter/limiter.js'
import { redisStore } from '../src/redis.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { manualClock } from '../src/testing/manual-clock.js'
import { type RedisProcess, startRedis } from './support/redis-process.ts'
import { configOf, perMinute, ruleOf } from './support/rule-config.ts'

const isNow = (decided: Decision | Promise<Decision>): decided is Decision => !(decided instanceof Promise)

const POLICIES = {
  log: slidingWindowLog({ limit: 3, window: '1m' }),
  bucket: tokenBucket({ capacity: 3, refillPerSecond: 1 }),
  several: [slidingWindowLog({ limit: 3, window: '1m' }), slidingWindowCounter({ limit: 9, window: '1h' })],
} as const

describe('in memory', () => {
  it.each(['log', 'bucket', 'several'] as const)(
    'checkNow decides %s at once in memory, as check does',
    async policy => {
      const clock = manualClock()
      const setUp = () => createLimiter({ store: memoryStore({ clock }), policies: POLICIES })
      const [now, later] = [setUp(), setUp()]
      for (let time = 0; time < 8; time++) {
        for (const ask of [{ policy }, { policy, scope: 'api' }, { policy, cost: 2 }]) {
          const decided = now.checkNow('user:1', ask)
          expect(isNow(decided)).toBe(true)
          expect(JSON.stringify(decided)).toBe(JSON.stringify(await later.check('user:1', ask)))
        }
        clock.advanceUs(400_000)
      }
    },
  )

  it('checkNow throws at once what check rejects with, and changes nothing', async () => {
    const limiter = createLimiter({ policies: POLICIES })
    expect(() => limiter.checkNow('nobody' as 'user:1', { policy: 'log' })).toThrow(/^subject: /)
    expect(() => limiter.checkNow('user:1', { policy: 'lag' as 'log' })).toThrow(/^policy: expected one of/)
    expect(() => limiter.checkNow('user:1', { policy: 'log', cost: -1 })).toThrow(/^cost: /)
    expect((await limiter.peek('user:1', { policy: 'log' })).remaining).toBe(3)
    await limiter.close()
    expect(() => limiter.checkNow('user:1', { policy: 'log' })).toThrow(/closed/)
  })
})

it('a limiter decides at once in memory, by policy and by rule', async () => {
  const rules = [ruleOf({ name: 'login', match: { path: '/login' }, charge: { policy: 'login' } })]
  const ruled = createLimiter({ config: configOf({ policies: { login: perMinute(1) }, rules }) })
  const ask = { subject: 'user:1', path: '/login' } as const
  const decided = [ruled.requestNow(ask), ruled.requestNow(ask)]
  expect(decided.map(one => isNow(one) && one.allowed)).toEqual([true, false])
  const asked = ruled.checkNow('user:1', { policy: 'login' })
  expect(isNow(asked) && asked.allowed).toBe(false)
  expect(() => ruled.requestNow({ subject: 'nobody' as 'user:1' })).toThrow(/^subject: /)
  await ruled.close()
})

describe('on Redis', () => {
  let redis: RedisProcess
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis.stop())

  async function openStore() {
    const client = createClient({ url: `redis://127.0.0.1:${redis.port}` })
    const store = redisStore(client, { deadlineMs: 2_000 })
    await store.ready()
    return store
  }

  async function setUp() {
    return createLimiter({
      store: await openStore(),
      policies: {
        ...POLICIES,
        hot: { limits: [slidingWindowLog({ limit: 1_000, window: '1m' })], lease: { max: 100, ttl: '2s' } },
      },
    })
  }

  it('checkNow promises what Redis has to be asked for, and then denies at once', async () => {
    const limiter = await setUp()
    const first = limiter.checkNow('user:1', { policy: 'log', cost: 3 })
    expect(isNow(first)).toBe(false)
    expect((await first).allowed).toBe(true)
    expect((await limiter.checkNow('user:1', { policy: 'log' })).allowed).toBe(false)
    const denied = limiter.checkNow('user:1', { policy: 'log' })
    expect(isNow(denied) && !denied.allowed).toBe(true)
    await limiter.close()
  })

  it('checkNow spends a lease at once', async () => {
    const limiter = await setUp()
    let atOnce = 0
    for (let time = 0; time < 40; time++) {
      const decided = limiter.checkNow('user:2', { policy: 'hot' })
      if (isNow(decided)) atOnce++
      expect((await decided).leased || !isNow(decided)).toBe(true)
    }
    expect(atOnce).toBeGreaterThan(20)
    await limiter.close()
  })

  it('a limiter lets a path that is skipped pass at once', async () => {
    const skip = { prefixes: ['/_next'], extensions: [] }
    const ruled = createLimiter({ config: configOf({ skip }), store: await openStore() })
    const skipped = ruled.requestNow({ subject: 'user:1', path: '/_next/app.js' })
    expect(isNow(skipped) && skipped.reason).toBe('skipped')
    expect(isNow(ruled.requestNow({ subject: 'user:1', path: '/' }))).toBe(false)
    await ruled.close()
  })
})

it('checkNow decides at once while the breaker is open', async () => {
  const client = createClient({ url: 'redis://127.0.0.1:1', socket: { reconnectStrategy: false } })
  client.on('error', () => {})
  const store = redisStore(client, { deadlineMs: 50, onStoreFailure: 'local' })
  const limiter = createLimiter({ store, policies: POLICIES })
  for (let time = 0; time < 6; time++) await limiter.check('user:3', { policy: 'several' })
  const decided = limiter.checkNow('user:4', { policy: 'several' })
  expect(isNow(decided) && decided.source).toBe('local')
  await limiter.close()
})
