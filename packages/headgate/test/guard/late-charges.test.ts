/** What a quota admitted while Redis was away, charged when it is back. */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter, quota, slidingWindowLog } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const policies = {
  rate: slidingWindowLog({ limit: 1_000_000, window: '1h' }),
  plan: [
    slidingWindowLog({ limit: 1_000_000, window: '1h' }),
    quota({ limit: 1_000_000, per: 'year', timeZone: 'Europe/Berlin' }),
  ],
  counted: quota({ limit: 1_000_000, per: 'year', overage: 'count', name: 'counted' }),
}
const cleanUps: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function setUp(library: 'ioredis' | 'node-redis') {
  const server = await startRedis()
  cleanUps.push(() => server.stop())
  const client =
    library === 'ioredis'
      ? new Redis({ port: server.port, lazyConnect: true })
      : createClient({ url: server.url })
  const store = redisStore(client, { deadlineMs: 500, processes: 1 })
  const limiter = createLimiter({ store, policies })
  cleanUps.push(() => limiter.close())
  await store.ready()
  const used = async (subject: string, policy: 'plan' | 'counted' = 'plan') =>
    (await limiter.usage(subject, { policy }))[0]?.used
  /** Requests of somebody else find out that Redis is away. */
  const freeze = async () => {
    server.kill('SIGSTOP')
    await waitUntil('Redis is known to be away', async () => {
      await limiter.check('user:other', { policy: 'rate' })
      return store.health().breakers[''] === 'open'
    })
  }
  return { server, store, limiter, used, freeze }
}

describe.each(['ioredis', 'node-redis'] as const)('with %s', library => {
  it('units of a quota that were admitted while Redis was frozen are charged exactly once when it is back', async () => {
    const { server, store, limiter, used, freeze } = await setUp(library)
    for (const subject of ['user:1', 'user:2']) await limiter.check(subject, { policy: 'plan', cost: 100 })

    await freeze()
    const during = await Promise.all(
      Array.from({ length: 300 }, (_, time) =>
        limiter.check(time % 3 === 0 ? 'user:1' : 'user:2', { policy: 'plan', cost: 2 }),
      ),
    )
    expect(new Set(during.map(({ allowed, source }) => `${allowed} ${source}`))).toEqual(
      new Set(['true local']),
    )
    await limiter.check('user:3', { policy: 'counted', cost: 7 })
    expect((await limiter.peek('user:1', { policy: 'plan', cost: 5 })).source).toBe('local')

    server.kill('SIGCONT')
    await waitUntil('all is charged', () => store.health().lateUnits === 607, { timeoutMs: 10_000 })
    expect(await used('user:1')).toBe(300)
    expect(await used('user:2')).toBe(500)
    expect(await used('user:3', 'counted')).toBe(7)
    expect(store.health()).toMatchObject({ lateUnits: 607, droppedUnits: 0 })

    await freeze()
    await limiter.check('user:1', { policy: 'plan', cost: 1 })
    server.kill('SIGCONT')
    await waitUntil('the second outage is charged', () => store.health().lateUnits === 608, {
      timeoutMs: 10_000,
    })
    expect(await used('user:1')).toBe(301)
    expect(await used('user:2')).toBe(500)
  })
})

it('a reservation that is settled before Redis is back is charged with what it really took', async () => {
  const { server, store, limiter, used, freeze } = await setUp('ioredis')
  await limiter.check('user:1', { policy: 'plan' })
  await freeze()
  const less = await limiter.reserve('user:1', { policy: 'plan', cost: 100 })
  await less.settle(30)
  const more = await limiter.reserve('user:1', { policy: 'plan', cost: 100 })
  await more.settle(150)
  server.kill('SIGCONT')
  await waitUntil('all is charged', () => store.health().lateUnits === 180, { timeoutMs: 10_000 })
  expect(await used('user:1')).toBe(181)
})

it('what a process that closes could not charge is counted', async () => {
  const { limiter, store, freeze } = await setUp('ioredis')
  await limiter.check('user:1', { policy: 'plan' })
  await freeze()
  await limiter.check('user:1', { policy: 'plan', cost: 9 })
  await limiter.close()
  expect(store.health()).toMatchObject({ lateUnits: 0, droppedUnits: 9 })
})
