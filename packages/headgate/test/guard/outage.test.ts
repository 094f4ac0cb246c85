import { AsyncLocalStorage } from 'node:async_hooks'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { decisionHeaders } from '../../src/decision/headers.js'
import { decisionProblem } from '../../src/decision/problem.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import type { RedisClient } from '../../src/store/redis/connection-of.js'
import type { RedisStoreOptions } from '../../src/store/redis/redis-options.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { onTime } from '../support/on-time.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { waitUntil } from '../support/wait-until.ts'

const POLICIES = {
  api: slidingWindowLog({ limit: 1_000_000, window: '1h' }),
  hundred: slidingWindowLog({ limit: 100, window: '1h' }),
}
const cleanUps: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function setUp(library: 'ioredis' | 'node-redis', options: RedisStoreOptions = {}) {
  const server = await startRedis()
  cleanUps.push(() => server.stop())
  return { server, ...(await limiterOn(server, library, options)) }
}

async function limiterOn(
  server: RedisProcess,
  library: 'ioredis' | 'node-redis',
  options: RedisStoreOptions,
) {
  const client: RedisClient =
    library === 'ioredis'
      ? new Redis({ port: server.port, lazyConnect: true })
      : createClient({ url: server.url })
  const events: string[] = []
  const store = redisStore(client, {
    // Long enough for a busy machine; the result does not depend on it.
    deadlineMs: 200,
    onEvent: event => events.push(event.type === 'breaker' ? event.state : event.type),
    ...options,
  })
  const limiter = createLimiter({ store, policies: POLICIES })
  cleanUps.push(() => limiter.close())
  await store.ready()
  const source = async (): Promise<string> => (await limiter.check('user:1', { policy: 'api' })).source
  return { limiter, store, events, source }
}

describe.each(['ioredis', 'node-redis'] as const)('with %s', library => {
  it('every request is decided while Redis is frozen, and by Redis again when it is back', async () => {
    const { server, store, events, source } = await setUp(library)
    expect(await source()).toBe('redis')

    server.kill('SIGSTOP')
    const during: string[] = []
    for (let time = 0; time < 20; time++) during.push(await source())
    expect(new Set(during)).toEqual(new Set(['local']))
    expect(events).toContain('open')
    expect(store.health()).toMatchObject({ fallbackAllowed: 20, fallbackDenied: 0, breakers: { '': 'open' } })

    server.kill('SIGCONT')
    await waitUntil('Redis decides again', async () => (await source()) === 'redis', { timeoutMs: 5_000 })
    expect(events).toContain('half-open')
    expect(events.at(-1)).toBe('closed')
  })

  it('every request is decided while Redis is dead, and Redis is found again when it comes back empty', async () => {
    const { server, source } = await setUp(library)
    expect(await source()).toBe('redis')
    server.kill('SIGKILL')
    await server.exited
    for (let time = 0; time < 20; time++) expect(await source()).toBe('local')
    const next = await startRedis({ port: server.port })
    cleanUps.push(() => next.stop())
    await waitUntil('Redis decides again', async () => (await source()) === 'redis', { timeoutMs: 10_000 })
  })

  it('the breaker does not open for a key that holds something else', async () => {
    const { server, limiter, events, source } = await setUp(library)
    await sendCommand(server.port, 'SET', 'ratelimit:v2:{user:poisoned}:global:api.log-1h', 'x')
    for (let time = 0; time < 30; time++) {
      expect((await limiter.check('user:poisoned', { policy: 'api' })).source).toBe('local')
    }
    expect(events.filter(event => event === 'open')).toEqual([])
    expect(await source()).toBe('redis')
  })
})

describe('the failure mode', () => {
  it('the failure mode is chosen for each request: local, open or closed', async () => {
    const { server, limiter } = await setUp('ioredis')
    server.kill('SIGKILL')
    await server.exited
    const closed = await limiter.check('user:1', { policy: 'api', onStoreFailure: 'closed' })
    expect(closed).toMatchObject({
      allowed: false,
      source: 'closed',
      reason: 'store-unavailable',
      retryAfterMs: 1_000,
    })
    expect(decisionProblem(closed).status).toBe(503)
    const open = await limiter.check('user:1', { policy: 'api', onStoreFailure: 'open' })
    expect(open).toMatchObject({ allowed: true, source: 'open', reason: 'store-unavailable' })
    const local = await limiter.check('user:1', { policy: 'api' })
    expect(local).toMatchObject({ allowed: true, source: 'local', reason: 'within-limit' })
    const denied = await limiter.check('user:1', { policy: 'api', cost: 1_000_000 })
    expect(decisionProblem(denied)).toMatchObject({ status: 429, body: { limit: null, remaining: null } })
    expect(decisionHeaders(denied).map(([name]) => name)).toEqual(['Retry-After'])
  })

  it('a refund of a charge that Redis did not make changes nothing in Redis, and does not fail', async () => {
    const { server, limiter } = await setUp('ioredis')
    const charged = await limiter.check('user:1', { policy: 'api' })
    server.kill('SIGKILL')
    await server.exited
    const local = await limiter.check('user:1', { policy: 'api' })
    expect(await limiter.refund(local)).toBe(0)
    expect(await limiter.refund(charged)).toBe(0)
    await expect(limiter.reset('user:1', { policy: 'api' })).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_HEADGATE_STORE/),
    })
  })

  it('the failure mode throw hands the error on', async () => {
    const { server, limiter } = await setUp('ioredis', { onStoreFailure: 'throw' })
    server.kill('SIGKILL')
    await server.exited
    await expect(limiter.check('user:1', { policy: 'api' })).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_HEADGATE_STORE/),
    })
  })

  it('the failure mode does not hide mistakes of the caller', async () => {
    const { limiter } = await setUp('ioredis')
    await expect(limiter.check('nobody' as 'a:b', { policy: 'api' })).rejects.toMatchObject({
      code: 'ERR_HEADGATE_INVALID_SUBJECT',
    })
  })
})

describe('the guards', () => {
  it('the guards take a stall of this process for what it is: no breaker opens', async () => {
    const { events, source } = await setUp('ioredis', { deadlineMs: 60 })
    // The first call of a script needs two round trips.
    await waitUntil('Redis knows the script', async () => (await source()) === 'redis')
    events.length = 0
    for (let time = 0; time < 8; time++) {
      const pending = source()
      const until = performance.now() + 150
      while (performance.now() < until);
      expect(await pending).toBe('redis')
    }
    expect(events).toEqual([])
  })

  it('the guards emit events in the async context of the store, not in that of a request', async () => {
    const context = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    const onEvent = (): void => void seen.push(context.getStore())
    const { server, source } = await context.run('the store', () => setUp('ioredis', { onEvent }))
    server.kill('SIGKILL')
    await server.exited
    await Promise.all(['one', 'two', 'three'].map(id => context.run(`request ${id}`, source)))
    expect(seen.length).toBeGreaterThan(5)
    expect(new Set(seen)).toEqual(new Set(['the store']))
  })

  it('the guards survive an observer that throws', async () => {
    const { server, source } = await setUp('ioredis', {
      onEvent: () => {
        throw new Error('observer')
      },
    })
    server.kill('SIGKILL')
    await server.exited
    expect(await source()).toBe('local')
  })

  it('the guards count the processes that share the limits', async () => {
    const { server, store } = await setUp('ioredis')
    const second = await limiterOn(server, 'node-redis', {})
    const third = await limiterOn(server, 'ioredis', {})
    await waitUntil('all three are counted', async () =>
      [store, second.store, third.store].every(one => one.health().liveProcesses === 3),
    )
    await third.limiter.close()
    await waitUntil('one is gone', async () => store.health().liveProcesses === 2, { timeoutMs: 10_000 })
    // Its local admissions may still count, so the shares of the others do not grow yet.
    expect(store.health().sharedAmong).toBe(3)
  })

  it('the guards count processes of their own service, and those that name none', async () => {
    const { server, store: api } = await setUp('ioredis', { service: 'api' })
    const others = await Promise.all(
      [{ service: 'api' }, { service: 'billing' }, { tenant: 'billing' }, {}].map(options =>
        limiterOn(server, 'ioredis', options),
      ),
    )
    const counts = (): number[] => [api, ...others.map(({ store }) => store)].map(counted)
    const counted = (one: typeof api): number => one.health().liveProcesses
    await waitUntil('everybody has counted', async () => String(counts()) === '3,3,3,3,5')
    expect([api, ...others.map(({ store }) => store)].map(one => one.health().sharedAmong)).toEqual(counts())
    expect(() => redisStore(new Redis({ lazyConnect: true }), { service: 'a/b' })).toThrow(
      /^service: expected up to 64 letters/,
    )
  })

  it('the guards admit the limit and one share in the window of a switch back, however often Redis comes and goes', () =>
    onTime(comeAndGo))

  async function comeAndGo(): Promise<void> {
    const opening = { batch: false, breakerSilenceMs: 0 } as const
    const { server, limiter } = await setUp('ioredis', { processes: 4, deadlineMs: 100, ...opening })
    const admitted = async (): Promise<number> => {
      const asked = Array.from({ length: 150 }, () => limiter.check('user:1', { policy: 'hundred' }))
      return (await Promise.all(asked)).filter(({ allowed }) => allowed).length
    }
    const source = async (): Promise<string> => (await limiter.peek('user:2', { policy: 'hundred' })).source
    expect((await limiter.check('user:1', { policy: 'hundred' })).source).toBe('redis')
    server.kill('SIGSTOP')
    expect(await admitted()).toBeLessThanOrEqual(25)
    server.kill('SIGCONT')
    await waitUntil('Redis decides again', async () => (await source()) === 'redis')
    // A Redis that goes on executes what had reached it, for nobody: that makes it fewer, never more.
    expect(await admitted()).toBeLessThanOrEqual(99)
    expect(await admitted()).toBe(0)
    server.kill('SIGSTOP')
    expect(await admitted()).toBe(0)
    server.kill('SIGCONT')
    await waitUntil('Redis decides again', async () => (await source()) === 'redis')
    expect(await admitted()).toBe(0)
  }
})
