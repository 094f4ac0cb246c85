/** A reset starts a new life of a key: nothing charged before it comes back to what is charged after it. */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Decision,
  memoryStore,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from '../src/index.js'
import { redisStore } from '../src/redis.js'
import type { Store } from '../src/store/store.js'
import { type RedisProcess, startRedis } from './support/redis-process.ts'

/** Returns a limit of each kind with this many units. */
const limitsOf = (limit: number) => ({
  log: slidingWindowLog({ limit, window: '1h' }),
  counter: slidingWindowCounter({ limit, window: '1h' }),
  buckets: slidingWindowCounter({ limit, window: '1h', buckets: 6 }),
  bucket: tokenBucket({ capacity: limit, refillPerSecond: 0.001 }),
})
const POLICIES = limitsOf(10)
const NAMES = Object.keys(POLICIES) as (keyof typeof POLICIES)[]

let server: RedisProcess
let subjects = 0
const stores: Store[] = []

beforeAll(async () => {
  server = await startRedis()
})
afterEach(async () => {
  await Promise.all(stores.splice(0).map(store => store.close()))
})
afterAll(() => server?.stop())

async function shared(): Promise<Store> {
  const client = new Redis({ port: server.port, lazyConnect: true })
  const store = redisStore(client, { deadlineMs: 10_000, denyCache: false })
  stores.push(store)
  await store.ready()
  return store
}

describe.each(NAMES)('%s', policy => {
  it.each([
    ['memory', () => memoryStore()],
    ['Redis', shared],
  ] as const)('a refund in %s gives nothing of a former life back', async (_, open) => {
    const limiter = createLimiter({ store: await open(), policies: POLICIES })
    const subject = `user:${subjects++}` as const
    const take = (cost: number): Promise<Decision> => limiter.check(subject, { policy, cost })
    const former = await take(3)
    await limiter.reset(subject, { policy })
    expect((await take(10)).allowed).toBe(true)
    expect(await limiter.refund(former)).toBe(0)
    expect((await take(1)).allowed).toBe(false)
  })
})

describe.each(NAMES)('a lease of a %s', policy => {
  it('a lease that another process has reset under it gives nothing back', async () => {
    const policies = { [policy]: { limits: limitsOf(100)[policy], lease: { max: 8, ttl: '1m' as const } } }
    const subject = `user:${subjects++}` as const
    const holder = createLimiter({ store: await shared(), policies })
    const other = createLimiter({ store: await shared(), policies })
    let decision: Decision
    do decision = await holder.check(subject, { policy })
    while (!decision.leased)
    await other.reset(subject, { policy })
    const { remaining } = await other.peek(subject, { policy })
    expect((await other.check(subject, { policy, cost: remaining ?? 0 })).allowed).toBe(true)
    expect(await holder.refund(decision)).toBe(0)
    // It gives back what it holds.
    await holder.close()
    expect((await other.check(subject, { policy })).allowed).toBe(false)
  })
})
