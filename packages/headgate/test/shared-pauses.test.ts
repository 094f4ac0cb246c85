/** What one process learns of a host's quota holds for all that share its store. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createLimiter, memoryStore, tokenBucket } from '../src/index.ts'
import { SharedPauses } from '../src/outbound/shared-pauses.ts'
import { limitFetch } from '../src/outbound.ts'
import { redisStore } from '../src/redis.ts'
import { manualClock } from '../src/testing/index.ts'
import { type RedisProcess, startRedis } from './support/redis-process.ts'

const HOST = 'api.example.com'
const nameOf = (host: string) => `host:${host}`

describe('a pause', () => {
  it('ends when it was to, is extended by a longer one, and not shortened by a shorter', async () => {
    const clock = manualClock()
    const pauses = new SharedPauses(memoryStore({ clock }), 'api', nameOf)
    expect(await pauses.leftMs(HOST)).toBe(0)
    await pauses.extend(HOST, 10_000)
    await pauses.extend(HOST, 10_000)
    expect(await pauses.leftMs(HOST)).toBe(10_000)
    clock.advanceUs(4_000_000)
    expect(await pauses.leftMs(HOST)).toBe(6_000)
    await pauses.extend(HOST, 5_000)
    expect(await pauses.leftMs(HOST)).toBe(6_000)
    await pauses.extend(HOST, 8_000)
    expect(await pauses.leftMs(HOST)).toBe(8_000)
    clock.advanceUs(8_000_000)
    expect(await pauses.leftMs(HOST)).toBe(0)
    await pauses.extend(HOST, 999_999_999)
    expect(await pauses.leftMs(HOST)).toBe(3_600_000)
    expect(await pauses.leftMs('other.example.com')).toBe(0)
  })
})

describe('processes on one Redis', () => {
  let redis: RedisProcess
  let server: Server
  let url: string
  let arrivals = 0
  let status = 429
  let headers: Record<string, string> = {}
  const closers: (() => void)[] = []
  const policies = { api: tokenBucket({ capacity: 1_000, refillPerSecond: 1_000 }) }

  beforeAll(async () => {
    redis = await startRedis()
    server = createServer((_, res) => {
      arrivals++
      res.writeHead(status, headers).end()
    })
    await new Promise<void>(resolve => server.listen(0, resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterAll(async () => {
    for (const close of closers) close()
    server.close()
    await redis.stop()
  })

  /** As another process: a connection, a store and a limiter of its own. */
  async function process() {
    const client = await createClient({ url: redis.url }).connect()
    closers.push(() => client.destroy())
    const store = redisStore(client, { deadlineMs: 5_000 })
    const limiter = createLimiter({ store, policies })
    return {
      pauses: new SharedPauses(store, 'api', host => limiter.nameOf({ type: 'host', id: host })),
      limited: limitFetch(fetch, { limiter, policy: 'api', timeoutMs: 300 }),
    }
  }

  it('a host that has told one of them to wait is left alone by all', async () => {
    headers = { 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '6m0s' }
    const [one, other] = await Promise.all([process(), process()])
    expect((await one.limited(url)).status).toBe(429)
    await expect.poll(() => other.pauses.leftMs(new URL(url).host)).toBeGreaterThan(300_000)
    await expect(other.limited(url)).rejects.toMatchObject({ code: 'ERR_HEADGATE_NO_TURN' })
    expect(arrivals).toBe(1)
  })

  it('that a fixed window is used up holds for all of them until it ends', async () => {
    const [one, other] = await Promise.all([process(), process()])
    let left = 1
    const endsAt = Math.floor(Date.now() / 1_000) + 600
    const api = createServer((_, res) => {
      res.writeHead(200, { 'x-ratelimit-remaining': left--, 'x-ratelimit-reset': endsAt }).end()
    })
    await new Promise<void>(resolve => api.listen(0, resolve))
    closers.push(() => api.close())
    const host = `127.0.0.1:${(api.address() as AddressInfo).port}`
    const fixed = `http://${host}/`
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      expect((await one.limited(fixed)).status).toBe(200)
      vi.setSystemTime(Date.now() + 10_000)
      expect((await one.limited(fixed)).status).toBe(200)
      await expect.poll(() => other.pauses.leftMs(host)).toBeGreaterThan(500_000)
      expect(await other.pauses.leftMs(host)).toBeLessThanOrEqual(590_000)
      await expect(other.limited(fixed)).rejects.toMatchObject({ code: 'ERR_HEADGATE_NO_TURN' })
    } finally {
      vi.useRealTimers()
    }
  })

  it('that a quota is used up, told by an answer that was served, holds for the process that read it', async () => {
    status = 200
    headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' }
    const [one, other] = await Promise.all([process(), process()])
    const served = url.replace('127.0.0.1', 'localhost')
    expect((await one.limited(served)).status).toBe(200)
    await expect(one.limited(served)).rejects.toMatchObject({ code: 'ERR_HEADGATE_NO_TURN' })
    expect((await other.limited(served)).status).toBe(200)
  })

  it('that many learn the same at once makes no longer pause', async () => {
    const all = await Promise.all(Array.from({ length: 4 }, process))
    await Promise.all(all.flatMap(({ pauses }) => [pauses.extend(HOST, 60_000), pauses.extend(HOST, 59_000)]))
    const left = await all[0]?.pauses.leftMs(HOST)
    expect(left).toBeLessThanOrEqual(60_000)
    expect(left).toBeGreaterThan(30_000)
  })

  it('while the store is away each goes by what it knows itself', async () => {
    status = 429
    headers = {}
    const own = await startRedis()
    const client = await createClient({ url: own.url }).connect()
    closers.push(() => client.destroy())
    client.on('error', () => {})
    const limiter = createLimiter({
      store: redisStore(client),
      policies,
      logger: { info() {}, warn() {}, error() {} },
    })
    const limited = limitFetch(fetch, { limiter, policy: 'api' })
    await own.stop()
    expect((await limited(url)).status).toBe(429)
    expect((await limited(url)).status).toBe(429)
    await limiter.close()
  })
})
