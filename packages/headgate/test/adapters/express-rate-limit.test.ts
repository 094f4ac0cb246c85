import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { type Options, rateLimit } from 'express-rate-limit'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rateLimitStore } from '../../src/express-rate-limit.ts'
import { memoryStore, type Store } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const STORES: readonly [string, () => Store][] = [
  ['in memory', () => memoryStore()],
  ['on Redis', () => redisStore(createClient({ url: redis.url }), { deadlineMs: 2_000 })],
]

/** Starts an app with the middleware as its users have it, with only the store replaced. */
async function start(store: Store, options: Partial<Options>) {
  const hits = rateLimitStore({
    store,
    subject: { secret: 'a-secret' },
    name: `test-${Math.random().toString(36).slice(2)}`,
  })
  const middleware = rateLimit({
    windowMs: 60_000,
    limit: 2,
    standardHeaders: 'draft-8',
    keyGenerator: request => request.get('x-key') ?? '',
    ...options,
    store: hits,
  })
  const app = express()
  app.use(middleware)
  app.get('/', (request, response) => {
    response.status(Number(request.query.status ?? 200)).send('hello')
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const get = async (key: string, query = '') => {
    const response = await fetch(`http://127.0.0.1:${port}/${query}`, { headers: { 'x-key': key } })
    await response.text()
    return response
  }
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await hits.shutdown?.()
  }
  return { get, middleware, stop }
}

describe.each(STORES)('a store for express-rate-limit, %s', (_, open) => {
  const statuses = async (
    get: (key: string, query?: string) => Promise<Response>,
    key: string,
    queries: string[],
  ) => {
    const found: number[] = []
    for (const query of queries) found.push((await get(key, query)).status)
    return found
  }

  it('a store for express-rate-limit holds the limit of the middleware for each key, and says when to come back', async () => {
    const { get, stop } = await start(open(), {})
    try {
      expect(await statuses(get, '192.0.2.1', ['', '', ''])).toEqual([200, 200, 429])
      expect((await get('192.0.2.2')).headers.get('ratelimit')).toMatch(/r=1; t=60$/)
      const denied = await get('192.0.2.1')
      expect(denied.status).toBe(429)
      expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(50)
    } finally {
      await stop()
    }
  })

  it('a store for express-rate-limit tells what a key has used, and resets it', async () => {
    const { get, middleware, stop } = await start(open(), {})
    try {
      expect(await middleware.getKey('a-key')).toBeUndefined()
      await statuses(get, 'a-key', ['', '', ''])
      expect((await middleware.getKey('a-key'))?.totalHits).toBe(3)
      await middleware.resetKey('a-key')
      expect(await middleware.getKey('a-key')).toBeUndefined()
      expect((await get('a-key')).status).toBe(200)
    } finally {
      await stop()
    }
  })

  it('failed requests are given back where the middleware skips them, and nothing for those it denied', async () => {
    const { get, stop } = await start(open(), { skipFailedRequests: true })
    try {
      const queries = ['?status=500', '?status=500', '?status=500', '', '', '', '']
      expect(await statuses(get, '2001:db8::/56', queries)).toEqual([500, 500, 500, 200, 200, 429, 429])
    } finally {
      await stop()
    }
  })

  it('a store for express-rate-limit counts for a limit that depends on the request', async () => {
    const limit: Options['limit'] = request => (request.get('x-key') === 'pro' ? 3 : 1)
    const { get, stop } = await start(open(), { limit })
    try {
      expect(await statuses(get, 'pro', ['', '', '', ''])).toEqual([200, 200, 200, 429])
      expect(await statuses(get, 'free', ['', ''])).toEqual([200, 429])
    } finally {
      await stop()
    }
  })
})

it('a store for express-rate-limit refuses an invalid store and an invalid name', () => {
  const wrong = (options: unknown) => () => rateLimitStore(options as { store: Store })
  expect(wrong({ store: {} })).toThrow(expect.objectContaining({ field: 'store' }))
  expect(wrong({ store: memoryStore(), name: 'a:b' })).toThrow(expect.objectContaining({ field: 'name' }))
})

it('a store for express-rate-limit keeps no key that may be a secret in Redis', async () => {
  const { get, stop } = await start(redisStore(createClient({ url: redis.url }), { deadlineMs: 2_000 }), {})
  const client = createClient({ url: redis.url })
  await client.connect()
  try {
    await get('sk_live_51')
    const keys = await client.keys('*')
    expect(keys.length).toBeGreaterThan(0)
    expect(keys.join()).not.toContain('sk_live_51')
  } finally {
    client.destroy()
    await stop()
  }
})
