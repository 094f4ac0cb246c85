/** Names that clients choose, as they arrive in Redis: bounded, byte for byte, and never an error. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'

const MEGABYTE = 1 << 20
const api = slidingWindowLog({ limit: 1, window: '1m' })

let redis: RedisProcess
let client: Redis
beforeAll(async () => {
  redis = await startRedis()
  client = new Redis({ port: redis.port, lazyConnect: true })
})
afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

/** Asks twice for each, and returns the keys that Redis then has. */
async function chargeEach(prefix: string, subjects: readonly { type: string; id: string }[]) {
  const store = redisStore(client, { prefix, deadlineMs: 5_000 })
  await store.ready()
  const limiter = createLimiter({ store, policies: { api }, subject: { secret: 'a secret of the test' } })
  for (const subject of subjects) {
    for (const allowed of [true, false]) {
      expect(await limiter.check(subject, { policy: 'api' })).toMatchObject({ allowed, source: 'redis' })
    }
  }
  await limiter.close()
  return ((await sendCommand(redis.port, 'KEYS', `${prefix}:*:api.*`)) as string[]).sort()
}

it('API keys of a megabyte are told apart by keys of less than 200 bytes', async () => {
  const subjects = Array.from({ length: 100 }, (_, index) => ({
    type: 'apikey',
    id: `${'x'.repeat(MEGABYTE)}${index}`,
  }))
  const keys = await chargeEach('long', subjects)
  expect(keys).toHaveLength(subjects.length)
  for (const key of keys) expect(Buffer.byteLength(key)).toBeLessThan(200)
})

it('spellings that only look alike are callers of their own, and control characters are no error', async () => {
  const ids = ['é', 'e\u0301', 'É', 'ada', 'Ada', 'ada\0', 'ada\r\n', 'ada ', ' ada', '\ud800', '\u202eada']
  const keys = await chargeEach(
    'exact',
    ids.map(id => ({ type: 'user', id })),
  )
  expect(keys).toHaveLength(ids.length)
  for (const key of keys) expect(key).not.toMatch(/\p{Cc}/u)
})
