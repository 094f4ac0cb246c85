/**
 * Every error reply that Redis can give to a script, produced on a real server. Each request is decided; replies
 * about the node open the breaker, replies about one key do not; and when the cause is gone, Redis decides again by
 * itself.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { beforeAll, describe, expect, it, type TestContext, vi } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import type { RedisConnection } from '../../src/store/redis/connection.js'
import type { RedisClient } from '../../src/store/redis/connection-of.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import type { StoreEvent } from '../../src/store/remote/store-event.js'
import type { RedisProcess } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { waitUntil } from '../support/wait-until.ts'
import { NODE_FAULTS, startWithUser, USER } from './node-faults.ts'

const POLICIES = { api: slidingWindowLog({ limit: 1_000_000, window: '1h' }) }
const LIBRARIES = ['ioredis', 'node-redis'] as const
type Library = (typeof LIBRARIES)[number]

beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})

function clientOf(library: Library, server: RedisProcess, anonymous = false): RedisClient {
  const user = anonymous ? {} : USER
  return library === 'ioredis'
    ? new Redis({ port: server.port, lazyConnect: true, ...user })
    : createClient({ url: server.url, ...user })
}

async function start({ onTestFinished }: TestContext, args?: readonly string[]) {
  const server = await startWithUser(args)
  onTestFinished(() => server.stop())
  return server
}

async function limiterOn(client: RedisClient, { onTestFinished }: TestContext) {
  const events: StoreEvent[] = []
  const store = redisStore(client, {
    // Long enough for a busy machine, so that the reply decides and not the clock.
    deadlineMs: 1_000,
    probeAfterMs: 100,
    logEveryMs: 86_400_000,
    onWarning: () => {},
    onEvent: event => events.push(event),
  })
  const limiter = createLimiter({ store, policies: POLICIES })
  onTestFinished(() => limiter.close())
  await store.ready()
  const sourceFor = async (subject: `user:${string}`): Promise<string> =>
    (await limiter.check(subject, { policy: 'api' })).source
  return { events, store, sourceFor }
}

const states = (events: readonly StoreEvent[]) =>
  events.flatMap(event => (event.type === 'breaker' ? [event.state] : []))
const failures = (events: readonly StoreEvent[]) => events.filter(event => event.type === 'failure')

describe.each(LIBRARIES)('with %s, an error reply about the node opens its breaker', library => {
  it.concurrent.for(Object.entries(NODE_FAULTS))(
    'an error reply about the node opens its breaker: %s',
    async ([, fault], context) => {
      const server = await start(context, fault.args)
      await fault.prepare?.(server)
      const { events, sourceFor } = await limiterOn(clientOf(library, server, fault.anonymous), context)
      expect(await sourceFor('user:1')).toBe('redis')

      await fault.cause(server)
      for (let time = 0; time < 12; time++) expect(await sourceFor('user:1')).toBe('local')
      const opened = events.findIndex(event => event.type === 'breaker')
      const before = failures(events.slice(0, opened + 1))
      expect(states(events)[0]).toBe('open')
      // The fifth failure opens it.
      expect(before).toHaveLength(4)
      expect(before.map(({ code }) => code)).not.toContain('ERR_HEADGATE_STORE_KEY')
      for (const { message } of before) expect(message).toMatch(fault.says)

      // While the cause lasts no probe may take the node for healthy: reads can work when writes are rejected.
      await sleep(500)
      expect(states(events)).toContain('half-open')
      expect(states(events)).not.toContain('closed')
      expect(await sourceFor('user:1')).toBe('local')

      await fault.lift(server)
      await waitUntil('Redis decides again', async () => (await sourceFor('user:1')) === 'redis', {
        timeoutMs: 10_000,
      })
      expect(states(events).at(-1)).toBe('closed')
    },
  )
})

describe.each(LIBRARIES)('with %s, an error reply that is no fault of the node', library => {
  it.concurrent('NOSCRIPT is answered with the script, and nobody notices', async context => {
    const server = await start(context)
    const { events, sourceFor } = await limiterOn(clientOf(library, server), context)
    for (let time = 0; time < 20; time++) {
      await sendCommand(server.port, 'SCRIPT', 'FLUSH')
      expect(await sourceFor('user:1')).toBe('redis')
    }
    expect(events).toEqual([])
  })

  it.concurrent('WRONGTYPE is that key’s alone', async context => {
    const server = await start(context)
    const { events, sourceFor } = await limiterOn(clientOf(library, server), context)
    await sendCommand(server.port, 'SET', 'ratelimit:v2:{user:poisoned}:global:api.log-1h', 'x')
    for (let time = 0; time < 30; time++) expect(await sourceFor('user:poisoned')).toBe('local')
    expect(failures(events)).toHaveLength(30)
    expect(new Set(failures(events).map(({ code }) => code))).toEqual(new Set(['ERR_HEADGATE_STORE_KEY']))
    expect(states(events)).toEqual([])
    expect(await sourceFor('user:1')).toBe('redis')
    await sendCommand(server.port, 'DEL', 'ratelimit:v2:{user:poisoned}:global:api.log-1h')
    expect(await sourceFor('user:poisoned')).toBe('redis')
  })
})

/** Scripts that fail over the value of a key, in every way a script can. The key holds the string `x`. */
const KEY_FAILURES = {
  'a wrong type': "return redis.call('HSET', KEYS[1], 'a', '1')",
  'not an integer': "return redis.call('INCR', KEYS[1])",
  'not a number': "return redis.call('INCRBYFLOAT', KEYS[1], '1')",
  'an error of the script itself': "return redis.call('GET', KEYS[1]) + 1",
}

describe('an error that a script raises over one key', () => {
  it.concurrent.for(Object.entries(KEY_FAILURES))(
    'an error that a script raises over one key does not count against the node: %s',
    async ([, text], context) => {
      const server = await start(context)
      const redis = new Redis({ port: server.port, ...USER })
      context.onTestFinished(() => redis.disconnect())
      await redis.set('x', 'x')
      const run =
        (how: 'eval' | 'evalsha') =>
        (script: string, keys: string[], args: string[]): Promise<unknown> =>
          keys[0]?.includes('{user:poisoned}')
            ? (redis.eval(text, 1, 'x') as Promise<unknown>)
            : (redis[how](script, keys.length, ...keys, ...args) as Promise<unknown>)
      const connection: RedisConnection = { evalsha: run('evalsha'), eval: run('eval') }
      const { events, sourceFor } = await limiterOn(connection, context)
      for (let time = 0; time < 10; time++) expect(await sourceFor('user:poisoned')).toBe('local')
      expect(new Set(failures(events).map(({ code }) => code))).toEqual(new Set(['ERR_HEADGATE_STORE_KEY']))
      expect(states(events)).toEqual([])
      expect(await sourceFor('user:1')).toBe('redis')
    },
  )
})
