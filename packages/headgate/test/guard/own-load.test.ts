/** This process's own load, or a short pause of Redis, does not count as a failure of Redis. */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import type { RedisStoreOptions } from '../../src/store/redis/redis-options.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { onTime } from '../support/on-time.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const LIBRARIES = ['ioredis', 'node-redis'] as const
const POLICIES = {
  api: slidingWindowLog({ limit: 1_000_000, window: '1h' }),
  scarce: tokenBucket({ capacity: 2, refillPerSecond: 0.001 }),
}
/** A test whose Redis has a core to answer with. */
const timed = (title: string, test: () => Promise<void>): void => it(title, () => onTime(test))
const cleanUps: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function server(): Promise<RedisProcess> {
  const redis = await startRedis()
  cleanUps.push(() => redis.stop())
  return redis
}

function limiterOn(
  redis: RedisProcess,
  library: (typeof LIBRARIES)[number],
  options: RedisStoreOptions = {},
) {
  const client =
    library === 'ioredis'
      ? new Redis({ port: redis.port, lazyConnect: true })
      : createClient({ url: redis.url })
  const breaker: string[] = []
  const store = redisStore(client, {
    onEvent: event => event.type === 'breaker' && breaker.push(event.state),
    ...options,
  })
  const limiter = createLimiter({ store, policies: POLICIES })
  cleanUps.push(() => limiter.close())
  const source = async (id: number | string = 1): Promise<string> =>
    (await limiter.check(`user:${id}`, { policy: 'api' })).source
  return { limiter, store, breaker, source }
}

async function warmedUp(library: (typeof LIBRARIES)[number], options: RedisStoreOptions = {}) {
  const redis = await server()
  const set = limiterOn(redis, library, options)
  await set.store.ready()
  await waitUntil('Redis knows the script', async () => (await set.source()) === 'redis')
  return { redis, ...set }
}

function block(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

describe.each(LIBRARIES)('with %s', library => {
  timed('five bodies of a thousand checks at once open no breaker', async () => {
    const { breaker, source } = await warmedUp(library)
    for (let body = 0; body < 5; body++) {
      await Promise.all(Array.from({ length: 5_000 }, (_, id) => source(id)))
    }
    expect(breaker).toEqual([])
  })

  timed('more checks than may be unanswered at once are rejected by this process, not by Redis', async () => {
    const { breaker, source } = await warmedUp(library)
    await Promise.all(Array.from({ length: 25_000 }, (_, id) => source(id)))
    expect(breaker).toEqual([])
  })

  timed(
    'a process that is busy before it can send, and before it can listen, still gets its answers',
    async () => {
      const { breaker, source } = await warmedUp(library)
      for (let times = 0; times < 5; times++) {
        const asked = source()
        block(100)
        // By now it has been sent.
        await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
        block(100)
        expect(await asked).toBe('redis')
      }
      expect(breaker).toEqual([])
    },
  )

  timed('a pause of 60 ms opens no breaker, and a server that is gone does', async () => {
    const { redis, breaker, source } = await warmedUp(library)
    const asked: Promise<string>[] = []
    const asking = setInterval(() => asked.push(source()), 5)
    cleanUps.push(() => clearInterval(asking))
    redis.kill('SIGSTOP')
    await new Promise(resolve => setTimeout(resolve, 60))
    redis.kill('SIGCONT')
    await waitUntil('Redis decides again', async () => (await source()) === 'redis')
    expect(breaker).toEqual([])

    redis.kill('SIGSTOP')
    await waitUntil('the breaker is open', async () => breaker.includes('open'))
    redis.kill('SIGCONT')
    clearInterval(asking)
    await Promise.all(asked)
  })

  timed('the first requests wait for the connection instead of being decided without Redis', async () => {
    const redis = await server()
    const { limiter } = limiterOn(redis, library, { connectTimeoutMs: 5_000 })
    const decisions = await Promise.all([1, 2, 3].map(() => limiter.check('user:1', { policy: 'scarce' })))
    expect(decisions.map(({ source }) => source)).toEqual(['redis', 'redis', 'redis'])
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false])
  })

  timed('ready settles, whether Redis is there or not', async () => {
    const redis = await server()
    const there = limiterOn(redis, library)
    expect(await there.store.ready()).toBe(true)
    await redis.stop()
    const away = limiterOn(redis, library)
    expect(await away.store.ready({ timeoutMs: 50 })).toBe(false)
    const closed = away.store.ready()
    await away.limiter.close()
    expect(await closed).toBe(false)
    await expect(there.store.ready({ timeoutMs: -1 })).rejects.toMatchObject({
      code: 'ERR_HEADGATE_INVALID_OPTION',
    })
  })

  timed('requests that Redis rejects at the start do not wait for the first connection', async () => {
    const redis = await server()
    await redis.stop()
    const { source } = limiterOn(redis, library, { connectTimeoutMs: 60_000 })
    expect(await source()).toBe('local')
  })

  timed('closing finishes calls in flight', async () => {
    const { limiter, breaker, source } = await warmedUp(library, { deadlineMs: 5_000 })
    const sources = Array.from({ length: 20 }, (_, id) => source(id))
    await limiter.close()
    expect(await Promise.all(sources)).toEqual(Array(20).fill('redis'))
    expect(breaker).toEqual([])
  })
})

it('settings out of range are rejected by name', () => {
  const rejected = (options: RedisStoreOptions) => () => redisStore(createClient(), options)
  expect(rejected({ connectTimeoutMs: -1 })).toThrow('connectTimeoutMs: expected')
  expect(rejected({ breakerSilenceMs: 0.5 })).toThrow('breakerSilenceMs: expected')
})
