/** The memory of a limit in Redis, by MEMORY USAGE of the whole key. */

import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check } from '../../src/check/check.ts'
import { askStore } from '../../src/store/ask-store.ts'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { redisKey } from '../../src/subject/key.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'

// The key of an IPv6 address; few unhashed ids are longer.
const SUBJECT = 'ip:2001:db8:85a3::8a2e:370:7334'

let redis: RedisProcess
let client: Redis
let store: RedisStore

beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.port)
  store = directRedisStore(client, { deadlineMs: 10_000 })
  await store.ready()
})

afterAll(async () => {
  await store?.close()
  client?.disconnect()
  await redis?.stop()
})

/** Returns the bytes of a key after this many requests on the server's own clock. */
async function bytesOfLog(entries: number): Promise<number> {
  const limit = slidingWindowLog({ limit: entries, window: '1h', name: `n${entries}` })
  const check: Check = { subject: SUBJECT, scope: 'global', name: `proof.${limit.id}`, limit, cost: 1 }
  for (let asked = 0; asked < entries; asked += 100) {
    const batch = Math.min(100, entries - asked)
    await Promise.all(
      Array.from({ length: batch }, async () => askStore(store, { alternatives: [[check]], shadow: [] })),
    )
  }
  const { subject, scope, name } = check
  const key = redisKey({ prefix: 'ratelimit', tenant: '', subject, scope, name })
  expect(await sendCommand(redis.port, 'ZCARD', key)).toBe(entries)
  return Number(await sendCommand(redis.port, 'MEMORY', 'USAGE', key, 'SAMPLES', 0))
}

it.each([
  slidingWindowCounter({ limit: 100, window: '1h' }),
  tokenBucket({ capacity: 100, refillPerSecond: 10 }),
])('a $algorithm takes at most 260 bytes', async limit => {
  const check: Check = { subject: SUBJECT, scope: 'global', name: `proof.${limit.id}`, limit, cost: 1 }
  await askStore(store, { alternatives: [[check]], shadow: [] })
  const { subject, scope, name } = check
  const key = redisKey({ prefix: 'ratelimit', tenant: '', subject, scope, name })
  expect(await sendCommand(redis.port, 'EXISTS', key)).toBe(1)
  const bytes = Number(await sendCommand(redis.port, 'MEMORY', 'USAGE', key))
  expect(bytes).toBeLessThanOrEqual(260)
})

// Up to 128 entries Redis packs them into one string. Beyond that, each has nodes of its own, and a table of twice
// their number just after it has grown, at 257 and 1,025. The first entry above 128 also pays for the table and the
// name of the key, which comes to 124 to 126 bytes.
it.each([
  { entries: 10, mostBytes: 60 },
  { entries: 100, mostBytes: 55 },
  { entries: 128, mostBytes: 55 },
  { entries: 257, mostBytes: 140 },
  { entries: 1_000, mostBytes: 140 },
  { entries: 1_025, mostBytes: 140 },
  { entries: 10_000, mostBytes: 140 },
])('a log of $entries requests takes at most $mostBytes bytes a request', async ({ entries, mostBytes }) => {
  const bytes = await bytesOfLog(entries)
  console.info(`log of ${entries}: ${bytes} bytes, ${(bytes / entries).toFixed(1)} a request`)
  expect(bytes / entries).toBeLessThanOrEqual(mostBytes)
})
