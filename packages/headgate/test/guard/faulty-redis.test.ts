import { createClient } from 'redis'
import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { faultyStore } from '../../src/testing/faulty-store.js'
import { guardedStore } from '../../src/testing/guarded-store.js'
import { keepLines } from '../support/kept-lines.ts'
import { startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'

it('faults can be put between a real Redis and the guards', async () => {
  const server = await startRedis()
  const direct = redisStore(createClient({ url: server.url }), { onStoreFailure: 'throw', deadlineMs: 1_000 })
  const faulty = faultyStore(direct)
  const store = guardedStore(faulty, { deadlineMs: 1_000, probeAfterMs: 50, logger: keepLines().logger })
  const limiter = createLimiter({ store, policies: { api: slidingWindowLog({ limit: 100, window: '1h' }) } })
  try {
    await direct.ready()
    const source = async (): Promise<string> => (await limiter.check('user:1', { policy: 'api' })).source
    expect(await source()).toBe('redis')
    faulty.faults.next(1, { type: 'lost-reply' })
    expect(await source()).toBe('local')
    expect((await limiter.peek('user:1', { policy: 'api' })).remaining).toBe(98)
    faulty.faults.always({ type: 'error' })
    for (let time = 0; time < 6; time++) expect(await source()).toBe('local')
    expect(store.health().breakers).toEqual({ '': 'open' })
    faulty.faults.stop()
    await waitUntil('Redis decides again', async () => (await source()) === 'redis')
  } finally {
    await limiter.close()
    await server.stop()
  }
})
