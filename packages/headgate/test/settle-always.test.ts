/** An admitted reservation settles, whatever admitted it, and the totals are those of what was really used. */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { defineConfig } from '../src/config.ts'
import {
  concurrency,
  createLimiter,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from '../src/index.ts'
import { redisStore } from '../src/redis.ts'
import { memoryStore } from '../src/store/memory/memory-store.ts'
import type { Store } from '../src/store/store.ts'
import { type RedisProcess, startRedis } from './support/redis-process.ts'

const SILENT = { info() {}, warn() {}, error() {} }
/** Refills so slowly that a test sees whole numbers. */
const tokens = tokenBucket({ capacity: 1_000, refillPerSecond: 0.01 })
const policies = {
  bucket: tokens,
  log: slidingWindowLog({ limit: 1_000, window: '1h' }),
  counter: slidingWindowCounter({ limit: 1_000, window: '1h' }),
  buckets: slidingWindowCounter({ limit: 1_000, window: '1h', buckets: 10 }),
  model: [
    slidingWindowLog({ limit: 1_000, window: '1h' }),
    slidingWindowLog({ limit: 5, window: '1h', counts: 'requests' }),
  ],
  permits: concurrency({ limit: 5 }),
}

let server: RedisProcess
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

let tenants = 0
const STORES: Record<string, () => Store> = {
  memory: () => memoryStore(),
  redis() {
    const client = new Redis({ port: server.port, lazyConnect: true })
    client.on('error', () => {})
    const store = redisStore(client, { deadlineMs: 2_000, logger: SILENT, tenant: `t${++tenants}` })
    closing.push(
      () => store.close(),
      () => client.disconnect(),
    )
    return store
  },
}

describe.each(Object.keys(STORES))('an admitted reservation settles: %s', name => {
  const newStore = () => (STORES[name] as () => Store)()

  it.each(['bucket', 'log', 'counter', 'buckets'] as const)(
    'an estimate of 0 is charged what it took: %s',
    async policy => {
      const limiter = createLimiter({ store: newStore(), policies })
      const { decision, settle } = await limiter.reserve('user:1', { policy, cost: 0 })
      expect(decision.allowed).toBe(true)
      await settle(7)
      await settle(7)
      expect((await limiter.peek('user:1', { policy })).remaining).toBe(993)
    },
  )

  it('an estimate of 0 is charged beside a limit that counts requests, and of what is in flight nothing is charged', async () => {
    const limiter = createLimiter({ store: newStore(), policies })
    const { settle } = await limiter.reserve('user:1', { policy: 'model', cost: 0 })
    await settle(7)
    const seen = await limiter.peek('user:1', { policy: 'model' })
    expect(seen.verdicts.map(({ remaining }) => remaining)).toEqual([993, 4])
    const { decision, settle: settlePermit } = await limiter.reserve('user:1', { policy: 'permits', cost: 3 })
    await expect(settlePermit(7)).resolves.toBeUndefined()
    await decision.release()
  })

  it.each([
    ['shadow', { mode: 'shadow' }],
    ['enforce: 0%%', { enforce: '0%' }],
  ] as const)(
    'a request that is only watched settles, and what is watched counts what it took: %s',
    async (_, how) => {
      const config = (strict: object) =>
        defineConfig({ ...strict, policies: { tokens }, default: { policy: 'tokens' } })
      const ruled = createLimiter({ config: config(how), store: newStore(), logger: SILENT })
      for (const [estimate, actual] of [
        [800, 100],
        [0, 7],
        [10, 20],
      ] as const) {
        const { decision, settle } = await ruled.reserve('user:1', { policy: 'tokens', cost: estimate })
        expect(decision.allowed).toBe(true)
        await settle(actual)
      }
      // Denied in shadow: the request would not have been made, so nothing of it counts.
      const beyond = await ruled.reserve('user:1', { policy: 'tokens', cost: 900 })
      expect([beyond.decision.allowed, beyond.decision.shadow[0]?.allowed]).toEqual([true, false])
      await beyond.settle(900)
      expect(await ruled.refund(beyond.decision)).toBe(0)
      const refunded = await ruled.reserve('user:1', { policy: 'tokens', cost: 30 })
      expect(await ruled.refund(refunded.decision, 10)).toBe(10)
      await refunded.settle(5)
      await ruled.reload(config({}))
      expect((await ruled.peek('user:1', { policy: 'tokens' })).remaining).toBe(1_000 - 100 - 7 - 20 - 5)
      await ruled.close()
    },
  )

  it('a candidate settles like the limit beside it', async () => {
    const candidate = [slidingWindowLog({ limit: 1_000, window: '1h' })]
    const config = defineConfig({
      policies: { tokens: { limits: [tokens], candidate } },
      default: { policy: 'tokens' },
    })
    const ruled = createLimiter({ config, store: newStore(), logger: SILENT })
    const { settle } = await ruled.reserve('user:1', { policy: 'tokens', cost: 800 })
    await settle(100)
    const { verdicts, shadow } = await ruled.peek('user:1', { policy: 'tokens' })
    expect([...verdicts, ...shadow].map(({ remaining }) => remaining)).toEqual([900, 900])
    await ruled.close()
  })

  it.each(['shadow', 'compare', 'enforce'] as const)(
    'settles after the file has changed from %s',
    async mode => {
      const config = (strict: object, capacity: number) =>
        defineConfig({
          ...strict,
          policies: { tokens: tokenBucket({ capacity, refillPerSecond: 0.01 }) },
          default: { policy: 'tokens' },
        })
      const ruled = createLimiter({ config: config({ mode }, 1_000), store: newStore(), logger: SILENT })
      const more = await ruled.reserve('user:1', { policy: 'tokens', cost: 100 })
      const less = await ruled.reserve('user:1', { policy: 'tokens', cost: 100 })
      const none = await ruled.reserve('user:1', { policy: 'tokens', cost: 0 })
      await ruled.reload(config({ mode: 'enforce' }, 900))
      await more.settle(150)
      await less.settle(50)
      await none.settle(7)
      expect((await ruled.peek('user:1', { policy: 'tokens' })).remaining).toBe(900 - 207)
      await ruled.close()
    },
  )

  it('settles where nothing limits, where throttling is off or paused, and rejects what was not admitted', async () => {
    const config = defineConfig({ policies: { tokens }, default: { policy: 'tokens' } })
    const ruled = createLimiter({ config, store: newStore(), logger: SILENT })
    for (const control of [{ enabled: false }, { enabled: true, multiplier: 0 }]) {
      await ruled.control.set(control)
      const { settle } = await ruled.reserve('user:1', { policy: 'tokens', cost: 10 })
      await expect(settle(20)).resolves.toBeUndefined()
    }
    await ruled.control.set({ multiplier: 1 })
    const denied = await ruled.check('user:1', { policy: 'tokens', cost: 2_000 })
    const peeked = await ruled.peek('user:1', { policy: 'tokens' })
    for (const decision of [denied, peeked]) {
      await expect(ruled.settle(decision, 5)).rejects.toMatchObject({ code: 'ERR_HEADGATE_NOT_CHARGED' })
    }
    expect((await ruled.peek('user:1', { policy: 'tokens' })).remaining).toBe(1_000)
    await ruled.close()
  })
})
