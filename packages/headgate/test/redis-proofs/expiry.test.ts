/** No key is immortal, whatever was asked, and none outlives what it counts by more than a second. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check } from '../../src/check/check.ts'
import { askStore } from '../../src/store/ask-store.ts'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'
import { listKeys, readKeyspace } from './keyspace.ts'

/** The longest window below; a bucket's is the time it takes to fill. */
const WINDOW_MS = 1_000

const LIMITS: readonly Limit[] = [
  slidingWindowLog({ limit: 5, window: '1s' }),
  slidingWindowCounter({ limit: 5, window: '1s' }),
  slidingWindowCounter({ limit: 5, window: '1s', buckets: 4 }),
  tokenBucket({ capacity: 5, refillPerSecond: 5 }),
  slidingWindowLog({ limit: 2 ** 32 - 1, window: '1ms' }),
  slidingWindowCounter({ limit: 1, window: '1ms' }),
  slidingWindowCounter({ limit: 1, window: '1ms', buckets: 1 }),
  tokenBucket({ capacity: 1, refillPerSecond: 1e6, name: 'fast' }),
]

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

function checkFor(subject: string, limit: Limit): Check {
  return { subject, scope: 'global', name: `proof.${limit.id}`, limit, cost: 1 }
}

it('every key has a TTL after checks, denials, peeks, refunds and resets, and is gone a second after its window', async () => {
  let charged = 0
  await Promise.all(
    Array.from({ length: 25 }, async (_, number) => {
      const subject = `user:${number}`
      const checks = LIMITS.map(limit => checkFor(subject, limit))
      for (let round = 0; round < 4; round++) {
        for (const check of checks) {
          const answer = await askStore(store, { alternatives: [[check]], shadow: [{ ...check, cost: 2 }] })
          await askStore(store, { alternatives: [[check]], shadow: [check] }, true)
          const [verdict] = answer.verdicts[0] ?? []
          const chargedAtUs = verdict?.chargedAtUs ?? null
          if (chargedAtUs !== null) charged++
          if (round === 1) await store.refund([{ check, units: 1, chargedAtUs }])
          if (round === 2) await store.refund([{ check, units: 9, chargedAtUs: null }])
        }
        await askStore(store, { alternatives: [checks], shadow: [] })
        if (round === 2 && number % 2 === 0) await store.reset(checks)
      }
    }),
  )
  const { keys, expires } = await readKeyspace(redis.port)
  expect(charged).toBeGreaterThan(200)
  expect(keys).toBeGreaterThan(50)
  expect(expires).toBe(keys)

  await sleep(WINDOW_MS + 1_000)
  expect(await listKeys(redis.port)).toEqual([])
  // Redis frees expired keys in the background.
  await waitUntil(
    'the memory of expired keys is free',
    async () => (await readKeyspace(redis.port)).keys === 0,
  )
})
