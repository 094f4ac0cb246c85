/** Faults between a process and Redis: every request is decided, and nothing stays broken afterwards. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import type { RedisStoreOptions } from '../../src/store/redis/redis-options.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

const POLICIES = { api: slidingWindowLog({ limit: 1_000_000, window: '1h' }) }
const cleanUps: (() => Promise<unknown> | unknown)[] = []

beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function setUp(library: 'ioredis' | 'node-redis', options: RedisStoreOptions) {
  const server = await startRedis()
  cleanUps.push(() => server.stop())
  const proxy = await startTcpProxy({ port: server.port })
  cleanUps.push(() => proxy.close())
  const client =
    library === 'ioredis'
      ? new Redis({ port: proxy.port, lazyConnect: true })
      : createClient({ url: `redis://127.0.0.1:${proxy.port}` })
  const states: string[] = []
  const store = redisStore(client, {
    ...options,
    onEvent: event => void (event.type === 'breaker' && states.push(event.state)),
  })
  const limiter = createLimiter({ store, policies: POLICIES })
  cleanUps.push(() => limiter.close())
  await store.ready()
  const source = async (): Promise<string> => (await limiter.check('user:1', { policy: 'api' })).source
  return { server, proxy, states, source }
}

/** Returns the connections on which Redis answered a script, by their ids, which are never reused. */
async function scriptClients(port: number): Promise<string[]> {
  const list = String(await sendCommand(port, 'CLIENT', 'LIST'))
  return list.split('\n').flatMap(line => {
    const [, id, command] = /^id=(\d+) .* cmd=(\S+)/.exec(line) ?? []
    return id !== undefined && command?.startsWith('eval') ? [id] : []
  })
}

describe.each(['ioredis', 'node-redis'] as const)('with %s', library => {
  it('a socket on a lost route, where nothing is closed and nothing arrives, is replaced', async () => {
    const { server, proxy, states, source } = await setUp(library, { deadlineMs: 100, probeAfterMs: 200 })
    expect(await source()).toBe('redis')
    const before = await scriptClients(server.port)
    expect(before).not.toEqual([])

    proxy.blackhole()
    for (let time = 0; time < 20; time++) expect(await source()).toBe('local')
    expect(states[0]).toBe('open')
    await sleep(1_500)
    expect(await source()).toBe('local')
    expect(states).not.toContain('closed')

    proxy.forward()
    await waitUntil('Redis decides again', async () => (await source()) === 'redis', { timeoutMs: 5_000 })
    await waitUntil('a new connection is used', async () => {
      await source()
      return (await scriptClients(server.port)).some(id => !before.includes(id))
    })
  })

  it('a connection that is slow within the deadline leaves Redis to decide', async () => {
    const { proxy, states, source } = await setUp(library, { deadlineMs: 1_000 })
    proxy.delay({ ms: 10 })
    for (let time = 0; time < 20; time++) expect(await source()).toBe('redis')
    expect(states).toEqual([])
  })

  it('a connection that is always beyond the deadline opens the breaker and keeps it open', async () => {
    const { proxy, states, source } = await setUp(library, { deadlineMs: 50, probeAfterMs: 100 })
    proxy.delay({ ms: 100 })
    for (let time = 0; time < 30; time++) {
      expect(await source()).toBe('local')
      await sleep(50)
    }
    expect(states).toContain('half-open')
    expect(states).not.toContain('closed')
    proxy.forward()
    await waitUntil('Redis decides again', async () => (await source()) === 'redis', { timeoutMs: 5_000 })
  })

  it('replies that arrive one byte at a time are understood', async () => {
    const { proxy, states, source } = await setUp(library, { deadlineMs: 2_000 })
    proxy.slice({ bytes: 1 })
    for (let time = 0; time < 10; time++) expect(await source()).toBe('redis')
    expect(states).toEqual([])
  })

  it('replies that are lost, then a reset, charge none twice', async () => {
    const { server, proxy, source } = await setUp(library, { deadlineMs: 200, probeAfterMs: 100 })
    expect(await source()).toBe('redis')
    proxy.dropReplies({ thenResetAfterMs: 20 })
    for (let time = 0; time < 4; time++) expect(await source()).toBe('local')
    const charged = await sendCommand(server.port, 'ZCARD', 'ratelimit:v2:{user:1}:global:api.log-1h')
    expect(charged).toBeLessThanOrEqual(5)
  })
})
