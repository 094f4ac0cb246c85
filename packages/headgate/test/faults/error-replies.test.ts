/**
 * Every error reply that Redis can give to a script, brought about on a real server: each request is decided, what
 * says something about the node opens the breaker, what says something about one key does not, and when the cause is
 * gone Redis decides again by itself.
 */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { beforeAll, describe, expect, it, type TestContext, vi } from 'vitest'
import { createLimiter } from '../../src/limiter.js'
import { slidingWindowLog } from '../../src/policy/limits.js'
import type { GuardEvent } from '../../src/store/guard/guard-event.js'
import type { RedisConnection } from '../../src/store/redis/connection.js'
import type { RedisClient } from '../../src/store/redis/direct-store.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { findFreePort } from '../support/free-port.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { openConnection, sendCommand } from '../support/resp.ts'
import { waitUntil } from '../support/wait-until.ts'

const POLICIES = { api: slidingWindowLog({ limit: 1_000_000, window: '1h' }) }
const USER = { username: 'app', password: 'app-password' }
const LIBRARIES = ['ioredis', 'node-redis'] as const
type Library = (typeof LIBRARIES)[number]

beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})

interface Fault {
  /** The words that reach the one who logs failures. */
  readonly says: string | RegExp
  readonly args?: readonly string[]
  /** Without a user and password. */
  readonly anonymous?: boolean
  prepare?(server: RedisProcess): Promise<unknown>
  cause(server: RedisProcess): Promise<unknown>
  lift(server: RedisProcess): Promise<unknown>
}

const config = (port: number, ...settings: string[]) => sendCommand(port, 'CONFIG', 'SET', ...settings)
const allSlots = ['0', '16383'] as const

/** Makes the server a replica of nobody. */
async function replicate({ port }: RedisProcess): Promise<void> {
  await sendCommand(port, 'REPLICAOF', '127.0.0.1', await findFreePort())
}

/** Fails by what stands where the file is to go: root may write anywhere. */
async function backUp(server: RedisProcess, expected: 'ok' | 'err'): Promise<void> {
  await sendCommand(server.port, 'BGSAVE')
  await waitUntil(`a backup that ends ${expected}`, async () => {
    const info = String(await sendCommand(server.port, 'INFO', 'persistence'))
    return info.includes('rdb_bgsave_in_progress:0') && info.includes(`rdb_last_bgsave_status:${expected}`)
  })
}

async function refuses(port: number, reply: string): Promise<void> {
  await waitUntil(`the server says ${reply}`, async () => {
    const said = await sendCommand(port, 'EVAL', "return redis.call('SET', KEYS[1], '1')", '1', '{x}')
    return said instanceof Error && said.message.startsWith(reply)
  })
}

const NODE_FAULTS: Record<string, Fault> = {
  LOADING: {
    says: 'LOADING ',
    async cause({ port }) {
      await sendCommand(port, 'DEBUG', 'POPULATE', '20000')
      await config(port, 'key-load-delay', '1000', 'loading-process-events-interval-bytes', '1024')
      sendCommand(port, 'DEBUG', 'RELOAD').catch(() => {})
      await refuses(port, 'LOADING')
    },
    lift: ({ port }) => config(port, 'key-load-delay', '0'),
  },
  BUSY: {
    says: 'BUSY ',
    async cause({ port }) {
      await config(port, 'lua-time-limit', '1')
      sendCommand(port, 'EVAL', 'while true do end', '0').catch(() => {})
      await refuses(port, 'BUSY')
    },
    lift: ({ port }) => sendCommand(port, 'SCRIPT', 'KILL'),
  },
  OOM: {
    says: 'OOM ',
    cause: ({ port }) => config(port, 'maxmemory', '1'),
    lift: ({ port }) => config(port, 'maxmemory', '0'),
  },
  READONLY: {
    says: /READONLY |closed|not connected|isn't writeable/i,
    cause: replicate,
    lift: ({ port }) => sendCommand(port, 'REPLICAOF', 'NO', 'ONE'),
  },
  MASTERDOWN: {
    says: 'MASTERDOWN ',
    args: ['--replica-serve-stale-data', 'no'],
    cause: replicate,
    lift: ({ port }) => sendCommand(port, 'REPLICAOF', 'NO', 'ONE'),
  },
  NOREPLICAS: {
    says: 'NOREPLICAS ',
    cause: ({ port }) => config(port, 'min-replicas-to-write', '1'),
    lift: ({ port }) => config(port, 'min-replicas-to-write', '0'),
  },
  MISCONF: {
    says: 'MISCONF ',
    args: ['--save', '3600 1000000'],
    async cause(server) {
      await mkdir(join(server.dir, 'dump.rdb', 'in-the-way'), { recursive: true })
      await backUp(server, 'err')
    },
    async lift(server) {
      await rm(join(server.dir, 'dump.rdb'), { recursive: true })
      await backUp(server, 'ok')
    },
  },
  CLUSTERDOWN: {
    says: 'CLUSTERDOWN ',
    args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '500'],
    async prepare({ port }) {
      await sendCommand(port, 'CLUSTER', 'ADDSLOTSRANGE', ...allSlots)
      await waitUntil('the cluster is up', async () =>
        String(await sendCommand(port, 'CLUSTER', 'INFO')).includes('cluster_state:ok'),
      )
    },
    cause: ({ port }) => sendCommand(port, 'CLUSTER', 'DELSLOTSRANGE', ...allSlots),
    lift: ({ port }) => sendCommand(port, 'CLUSTER', 'ADDSLOTSRANGE', ...allSlots),
  },
  NOPERM: {
    says: 'NOPERM ',
    cause: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', '-evalsha'),
    lift: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', '+evalsha'),
  },
  'ERR … can’t run this command': {
    says: "can't run this command",
    cause: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', '-zadd'),
    lift: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', '+zadd'),
  },
  'WRONGPASS, when it connects again': {
    says: /./,
    async cause({ port }) {
      await sendCommand(port, 'ACL', 'SETUSER', 'app', 'resetpass', '>another')
      await sendCommand(port, 'CLIENT', 'KILL', 'TYPE', 'normal')
    },
    lift: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', `>${USER.password}`),
  },
  'NOAUTH, when it connects again': {
    says: /./,
    anonymous: true,
    async cause({ port }) {
      const connection = await openConnection(port)
      await connection.send('ACL', 'SETUSER', 'default', 'resetpass', '>secret')
      await connection.send('CLIENT', 'KILL', 'TYPE', 'normal')
      connection.close()
    },
    async lift({ port }) {
      const connection = await openConnection(port)
      await connection.send('AUTH', 'secret')
      await connection.send('ACL', 'SETUSER', 'default', 'nopass')
      connection.close()
    },
  },
}

function clientOf(library: Library, server: RedisProcess, anonymous = false): RedisClient {
  const user = anonymous ? {} : USER
  return library === 'ioredis'
    ? new Redis({ port: server.port, lazyConnect: true, ...user })
    : createClient({ url: server.url, ...user })
}

async function startWithUser({ onTestFinished }: TestContext, args: readonly string[] = []) {
  const server = await startRedis({ args })
  onTestFinished(() => server.stop())
  await sendCommand(server.port, 'ACL', 'SETUSER', 'app', 'on', `>${USER.password}`, '~*', '&*', '+@all')
  return server
}

async function limiterOn(client: RedisClient, { onTestFinished }: TestContext) {
  const events: GuardEvent[] = []
  const store = redisStore(client, {
    // Long enough for a machine that is busy with other tests, so that it is the reply that decides and not the clock.
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

const states = (events: readonly GuardEvent[]) =>
  events.flatMap(event => (event.type === 'breaker' ? [event.state] : []))
const failures = (events: readonly GuardEvent[]) => events.filter(event => event.type === 'failure')

describe.each(LIBRARIES)('with %s, an error reply about the node opens its breaker', library => {
  it.concurrent.for(Object.entries(NODE_FAULTS))('%s', async ([, fault], context) => {
    const server = await startWithUser(context, fault.args)
    await fault.prepare?.(server)
    const { events, sourceFor } = await limiterOn(clientOf(library, server, fault.anonymous), context)
    expect(await sourceFor('user:1')).toBe('redis')

    await fault.cause(server)
    for (let time = 0; time < 12; time++) expect(await sourceFor('user:1')).toBe('local')
    const opened = events.findIndex(event => event.type === 'breaker')
    const before = failures(events.slice(0, opened + 1))
    expect(states(events)[0]).toBe('open')
    // The fifth failure is what opens it.
    expect(before).toHaveLength(4)
    expect(before.map(({ code }) => code)).not.toContain('ERR_HEADGATE_STORE_KEY')
    for (const { message } of before) expect(message).toMatch(fault.says)

    // While the cause lasts no probe may take the node for healthy: reads can work when writes are refused.
    await sleep(500)
    expect(states(events)).toContain('half-open')
    expect(states(events)).not.toContain('closed')
    expect(await sourceFor('user:1')).toBe('local')

    await fault.lift(server)
    await waitUntil('Redis decides again', async () => (await sourceFor('user:1')) === 'redis', {
      timeoutMs: 10_000,
    })
    expect(states(events).at(-1)).toBe('closed')
  })
})

describe.each(LIBRARIES)('with %s, an error reply that is no fault of the node', library => {
  it.concurrent('NOSCRIPT is answered with the script, and nobody notices', async context => {
    const server = await startWithUser(context)
    const { events, sourceFor } = await limiterOn(clientOf(library, server), context)
    for (let time = 0; time < 20; time++) {
      await sendCommand(server.port, 'SCRIPT', 'FLUSH')
      expect(await sourceFor('user:1')).toBe('redis')
    }
    expect(events).toEqual([])
  })

  it.concurrent('WRONGTYPE is that key’s alone', async context => {
    const server = await startWithUser(context)
    const { events, sourceFor } = await limiterOn(clientOf(library, server), context)
    await sendCommand(server.port, 'SET', 'ratelimit:v1:{user:poisoned}:global:api.log-1h', 'x')
    for (let time = 0; time < 30; time++) expect(await sourceFor('user:poisoned')).toBe('local')
    expect(failures(events)).toHaveLength(30)
    expect(new Set(failures(events).map(({ code }) => code))).toEqual(new Set(['ERR_HEADGATE_STORE_KEY']))
    expect(states(events)).toEqual([])
    expect(await sourceFor('user:1')).toBe('redis')
    await sendCommand(server.port, 'DEL', 'ratelimit:v1:{user:poisoned}:global:api.log-1h')
    expect(await sourceFor('user:poisoned')).toBe('redis')
  })
})

/** Scripts that fail over what a key holds, in every way a script can. The key holds the string `x`. */
const KEY_FAILURES = {
  'a wrong type': "return redis.call('HSET', KEYS[1], 'a', '1')",
  'not an integer': "return redis.call('INCR', KEYS[1])",
  'not a number': "return redis.call('INCRBYFLOAT', KEYS[1], '1')",
  'an error of the script itself': "return redis.call('GET', KEYS[1]) + 1",
}

describe('an error that a script raises over one key', () => {
  it.concurrent.for(Object.entries(KEY_FAILURES))(
    'does not count against the node: %s',
    async ([, text], context) => {
      const server = await startWithUser(context)
      const redis = new Redis({ port: server.port, ...USER })
      context.onTestFinished(() => redis.disconnect())
      await redis.set('x', 'x')
      const connection: RedisConnection = {
        evalsha: (sha, keys, args) =>
          keys[0]?.includes('{user:poisoned}')
            ? (redis.eval(text, 1, 'x') as Promise<unknown>)
            : (redis.evalsha(sha, keys.length, ...keys, ...args) as Promise<unknown>),
        eval: (script, keys, args) => redis.eval(script, keys.length, ...keys, ...args) as Promise<unknown>,
      }
      const { events, sourceFor } = await limiterOn(connection, context)
      for (let time = 0; time < 10; time++) expect(await sourceFor('user:poisoned')).toBe('local')
      expect(new Set(failures(events).map(({ code }) => code))).toEqual(new Set(['ERR_HEADGATE_STORE_KEY']))
      expect(states(events)).toEqual([])
      expect(await sourceFor('user:1')).toBe('redis')
    },
  )
})
