/**
 * Questions of one turn of the event loop are sent as one call, counted by the server itself, and each is answered
 * as if it had been alone.
 */

import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check } from '../../src/check/check.ts'
import { askStore, type Question } from '../../src/store/ask-store.ts'
import type { RedisClient } from '../../src/store/redis/connection-of.ts'
import type { RedisStoreOptions } from '../../src/store/redis/redis-options.ts'
import { redisKey } from '../../src/subject/key.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { isLog } from '../support/limit-kinds.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { openConnection, type RespConnection } from '../support/resp.ts'

const counter = slidingWindowCounter({ limit: 10, window: '1m' })
const LIMITS = [
  counter,
  slidingWindowLog({ limit: 10, window: '1m' }),
  slidingWindowCounter({ limit: 10, window: '1m', buckets: 6 }),
  tokenBucket({ capacity: 10, refillPerSecond: 0.001 }),
]

let redis: RedisProcess
let connection: RespConnection
let subjects = 0

beforeAll(async () => {
  redis = await startRedis()
  connection = await openConnection(redis.port)
})
afterAll(async () => {
  connection?.close()
  await redis?.stop()
})

const CLIENTS: Readonly<Record<string, () => RedisClient>> = {
  ioredis: () => new Redis({ port: redis.port, lazyConnect: true }),
  'node-redis': () => createClient({ url: redis.url }),
}

function newCheck(limit = counter as Check['limit'], cost = 1): Check {
  return { subject: `user:${subjects++}`, scope: 'global', name: `batch.${limit.id}`, limit, cost }
}

const one = (check: Check): Question => ({ alternatives: [[check]], shadow: [] })

async function open(client: RedisClient, options: RedisStoreOptions = {}) {
  const store = directRedisStore(client, { deadlineMs: 10_000, ...options })
  await store.ready()
  await askStore(store, one(newCheck()))
  return store
}

/** Counts the script calls on the server while `work` is done. */
async function callsDuring(work: () => Promise<unknown>): Promise<number> {
  await connection.send('CONFIG', 'RESETSTAT')
  await work()
  const stats = String(await connection.send('INFO', 'commandstats'))
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

describe.each(Object.keys(CLIENTS))('%s', name => {
  const client = (): RedisClient => (CLIENTS[name] as () => RedisClient)()

  it('questions asked in one turn are sent as few calls, and one question as one', async () => {
    const store = await open(client())
    const ask = (count: number) =>
      callsDuring(() => Promise.all(Array.from({ length: count }, () => askStore(store, one(newCheck())))))
    expect(await ask(1)).toBe(1)
    // After a call of one check the next leaves at once, and does not wait for those behind it.
    expect(await ask(64)).toBe(2)
    expect(await ask(64)).toBe(1)
    expect(await ask(512)).toBe(8)
    await store.close()
  })

  it('questions go on in batches when the callers of one reply ask again', async () => {
    const store = await open(client())
    const rounds = 5
    const asking = async (): Promise<void> => {
      for (let round = 0; round < rounds; round++) await askStore(store, one(newCheck()))
    }
    const calls = await callsDuring(() => Promise.all(Array.from({ length: 512 }, asking)))
    expect(calls).toBeLessThanOrEqual(2 * 8 * rounds)
    await store.close()
  })

  it('a call is held to its cap of checks, and each question is sent alone when told to', async () => {
    const small = await open(client(), { batch: { maxChecks: 10 } })
    const pair = (): Question => ({ alternatives: [[newCheck(), newCheck(LIMITS[1])]], shadow: [] })
    const pairs = () => Promise.all(Array.from({ length: 20 }, () => askStore(small, pair())))
    expect(await callsDuring(pairs)).toBe(4)
    expect(await callsDuring(pairs)).toBe(4)
    await small.close()
    const alone = await open(client(), { batch: false })
    const singles = () => Promise.all(Array.from({ length: 20 }, () => askStore(alone, one(newCheck()))))
    expect(await callsDuring(singles)).toBe(20)
    await alone.close()
  })
})

it.each(LIMITS)('requests for one key in one call admit exactly the limit: $id', async limit => {
  const store = await open(CLIENTS.ioredis?.() as RedisClient)
  const check = newCheck(limit)
  const answers = await Promise.all(Array.from({ length: 64 }, () => askStore(store, one(check))))
  expect(answers.map(({ charged }) => charged)).toEqual([...Array(10).fill(0), ...Array(54).fill(-1)])
  expect(answers.slice(0, 10).map(({ verdicts }) => verdicts[0]?.[0]?.remaining)).toEqual([
    9, 8, 7, 6, 5, 4, 3, 2, 1, 0,
  ])
  await store.close()
})

it('questions asked in one turn keep their order, whatever they are', async () => {
  const store = await open(CLIENTS.ioredis?.() as RedisClient)
  const check = newCheck()
  const first = askStore(store, one({ ...check, cost: 4 }))
  const before = askStore(store, one(check), true)
  const second = askStore(store, one({ ...check, cost: 6 }))
  const denied = askStore(store, one(check))
  const given = store.refund([{ check, units: 4, chargedAtUs: null }])
  const after = askStore(store, one(check), true)
  const reset = store.reset([check])
  const fresh = askStore(store, one(check), true)
  const left = (await Promise.all([first, before, second, denied, after, fresh])).map(
    ({ verdicts }) => verdicts[0]?.[0]?.remaining,
  )
  expect(left).toEqual([6, 6, 0, 0, 4, 10])
  expect(await given).toEqual([4])
  await reset
  await store.close()
})

it('one question fails alone, also when the arithmetic fails on a key’s value', async () => {
  const store = await open(CLIENTS.ioredis?.() as RedisClient)
  const log = LIMITS[1] as Check['limit']
  const poisoned = newCheck()
  const stumbling = newCheck(log)
  const keyOf = ({ subject, scope, name }: Check): string =>
    redisKey({ prefix: 'ratelimit', tenant: '', subject, scope, name })
  await connection.send('SET', keyOf(poisoned), 'a string')
  // Its newest entry is ours and full; the entries before it cannot be counted.
  const nowUs = Date.now() * 1000
  const entries = [String(nowUs - 5), 'ada', String(nowUs - 3), 'grace', String(nowUs), '0000000000010']
  await connection.send('ZADD', keyOf(stumbling), ...entries)
  const asked = [newCheck(), poisoned, newCheck(log), stumbling, newCheck(LIMITS[3])]
  const results = await Promise.allSettled(asked.map(check => askStore(store, one(check))))
  expect(results.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'rejected',
    'fulfilled',
  ])
  for (const result of results) {
    if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'ERR_HEADGATE_STORE_KEY' })
  }
  await store.close()
})

it('a rejection of the server is reported as its failure, not as one key’s', async () => {
  const store = await open(CLIENTS.ioredis?.() as RedisClient)
  await connection.send('CONFIG', 'SET', 'maxmemory', '1')
  const results = await Promise.allSettled([newCheck(), newCheck()].map(check => askStore(store, one(check))))
  await connection.send('CONFIG', 'SET', 'maxmemory', '0')
  for (const result of results) {
    expect(result).toMatchObject({ status: 'rejected', reason: { code: 'ERR_HEADGATE_STORE' } })
  }
  await store.close()
})

it.each(LIMITS)('a key is left as it was when the server is out of memory: $id', async limit => {
  const store = await open(CLIENTS.ioredis?.() as RedisClient)
  const check = newCheck(limit)
  const key = redisKey({ prefix: 'ratelimit', tenant: '', ...check })
  await askStore(store, one({ ...check, cost: 2 }))
  // Of the entries that have left the window, the next charge drops all but the newest.
  if (isLog(limit)) await connection.send('ZADD', key, 1, '0000000000000', 2, '0000000000001')
  const digest = () => connection.send('DEBUG', 'DIGEST-VALUE', key)
  const before = await digest()
  await connection.send('CONFIG', 'SET', 'maxmemory', '1')
  const asked = [one(check), { alternatives: [[check, newCheck()]], shadow: [] }]
  const results = await Promise.allSettled(asked.map(question => askStore(store, question)))
  await connection.send('CONFIG', 'SET', 'maxmemory', '0')
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await digest()).toEqual(before)
  await store.close()
})

it.each([
  ['batch', 'yes'],
  ['batch.maxChecks', { maxChecks: 0 }],
  ['batch.maxChecks', { maxChecks: 1.5 }],
])('redisStore rejects %s: %j by name', (field, batch) => {
  expect(() => directRedisStore({} as RedisClient, { batch: batch as never })).toThrow(`${field}: expected`)
})
