/**
 * Stored values are plain decimal numbers, however extreme the limits. Lua writes large numbers with an exponent
 * and a rounded mantissa unless one takes care, and an infinity or NaN would lock a key for good.
 */

import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { MAX_UNITS } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check } from '../../src/check/check.ts'
import { askStore } from '../../src/store/ask-store.ts'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { redisKey } from '../../src/subject/key.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { openConnection, type RespConnection } from '../support/resp.ts'
import { listKeys } from './keyspace.ts'

const NOW_US = 1_763_231_231_123_456

let redis: RedisProcess
let client: Redis
let store: RedisStore
let connection: RespConnection
let clockUs: number | null = null

beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.port)
  store = directRedisStore(client, { deadlineMs: 10_000, testClockUs: () => clockUs ?? NOW_US })
  await store.ready()
  connection = await openConnection(redis.port)
})

afterAll(async () => {
  connection?.close()
  await store?.close()
  client?.disconnect()
  await redis?.stop()
})

const units = fc.constantFrom(1, 2, 3, 1000, 2 ** 31, MAX_UNITS - 1, MAX_UNITS)
const window = fc.constantFrom('1ms', '1s', '59.999s', '1m', '1h', '1d', '365d', '366d')
const rate = fc.constantFrom(1e-9, 1e-6, 1 / 3600, 1 / 3, 1, 7.7, 1e6, MAX_UNITS, MAX_UNITS * 1000)

const limits: fc.Arbitrary<Limit> = fc.oneof(
  fc.record({ limit: units, window }).map(slidingWindowLog),
  fc.record({ limit: units, window }).map(slidingWindowCounter),
  fc
    .record({ limit: units, window, buckets: fc.constantFrom(1, 7, 1000) })
    .map(options => slidingWindowCounter(options.window === '1ms' ? { ...options, buckets: 1 } : options)),
  fc
    .record({ capacity: units, refillPerSecond: rate })
    .filter(({ capacity, refillPerSecond }) => capacity / refillPerSecond < 4e9)
    .map(tokenBucket),
)

/** Times that end in many zeros are the ones a careless conversion shortens. */
const steps = fc.array(
  fc.record({
    gapUs: fc.constantFrom(0, 1, 999, 1e6, 6e7, 3.6e9, 8.64e10, 3.15e13, -1, -1e6, -3.6e9),
    share: fc.constantFrom(0, 0.1, 0.5, 1),
    refund: fc.boolean(),
  }),
  { minLength: 1, maxLength: 12 },
)
const starts = fc.constantFrom(NOW_US, 1_763_000_000_000_000, 1_000_000_000_000_000, 2_000_000_000_000_000)

function checkFor(subject: string, limit: Limit, cost: number): Check {
  return { subject, scope: 'global', name: `proof.${limit.id}`, limit, cost }
}

/** Returns all values under a key as [where, text], with the form each must have. */
async function storedValues(key: string): Promise<{ where: string; text: string; form: RegExp }[]> {
  const type = await connection.send('TYPE', key)
  if (type === 'zset') {
    const flat = (await connection.send('ZRANGE', key, 0, -1, 'WITHSCORES')) as string[]
    return flat.map((text, index) => ({
      where: index % 2 === 0 ? 'member' : 'score',
      text,
      form: index % 2 === 0 ? /^\d{13}:\d{16}$/ : /^\d{1,16}$/,
    }))
  }
  if (type === 'string') {
    const text = (await connection.send('GET', key)) as string
    return [{ where: 'number', text, form: /^(\d{1,15}|\d{1,10}:\d{1,10}:\d{1,13}:\d{1,13})$/ }]
  }
  const flat = (await connection.send('HGETALL', key)) as string[]
  const forms: Record<string, RegExp> = {
    tokens: /^\d{1,10}\.\d{6}$/,
    capacity: /^\d{1,10}\/[\d.e+-]{1,24}$/,
    counts: /^\d{1,10}(,\d{1,10})*$/,
  }
  return flat.flatMap((where, index) =>
    index % 2 === 0 ? [{ where, text: flat[index + 1] as string, form: forms[where] ?? /^\d{1,16}$/ }] : [],
  )
}

async function expectPlainNumbers(): Promise<number> {
  let seen = 0
  for (const key of await listKeys(redis.port)) {
    expect(Number(await connection.send('PTTL', key)), key).toBeGreaterThan(0)
    for (const { where, text, form } of await storedValues(key)) {
      expect(text, `${where} of ${key}`).toMatch(form)
      seen++
    }
  }
  return seen
}

it('limits to 2^32 − 1, windows of 366 days and the smallest and largest rates are stored in plain digits', async () => {
  let subjects = 0
  await fc.assert(
    fc.asyncProperty(limits, starts, steps, async (limit, startUs, history) => {
      const subject = `user:${subjects++}`
      clockUs = startUs
      for (const { gapUs, share, refund } of history) {
        clockUs += gapUs
        const check = checkFor(subject, limit, Math.floor(limit.limit * share))
        const answer = await askStore(store, { alternatives: [[check]], shadow: [] })
        const chargedAtUs = answer.verdicts[0]?.[0]?.chargedAtUs ?? null
        if (refund && chargedAtUs !== null) await store.refund([{ check, units: 1, chargedAtUs }])
      }
    }),
    { numRuns: 300 },
  )
  expect(await expectPlainNumbers()).toBeGreaterThan(500)
})

it('a log that has counted far beyond 2^32 counts from zero again and keeps its 13 digits', async () => {
  await connection.send('FLUSHALL')
  const limit = slidingWindowLog({ limit: MAX_UNITS, window: '1ms' })
  const check = checkFor('user:heavy', limit, MAX_UNITS)
  clockUs = NOW_US
  for (let ask = 0; ask < 2_500; ask++) {
    clockUs += 1_000
    const answer = await askStore(store, { alternatives: [[check]], shadow: [] })
    expect(answer.charged).toBe(0)
  }
  const { prefix, tenant } = { prefix: 'ratelimit', tenant: '' }
  const key = redisKey({ prefix, tenant, subject: check.subject, scope: check.scope, name: check.name })
  // 2,500 × (2^32 − 1) has 14 digits.
  expect(await connection.send('ZCARD', key)).toBeLessThanOrEqual(2)
  expect(await expectPlainNumbers()).toBeGreaterThan(0)
})
