import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster, createSentinel } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clientOptions, redisStore } from '../../src/redis.js'
import { askStore } from '../../src/store/ask-store.ts'
import type { MakeRedisClient, RedisClient } from '../../src/store/redis/connection-of.js'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { readInfo } from '../support/redis-info.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { type SentinelSetup, startSentinel } from '../support/redis-sentinel.ts'
import { sendCommand } from '../support/resp.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'
import { expectToWork } from './expect-to-work.ts'
import { one } from './questions.ts'
import { countCharges } from './server-count.ts'

let server: RedisProcess
let cluster: RedisCluster
let sentinel: SentinelSetup
beforeAll(async () => {
  server = await startRedis()
  cluster = await startCluster({ primaries: 2, replicasPerPrimary: 0 })
  sentinel = await startSentinel({ replicas: 1, sentinels: 1 })
})
afterAll(() => Promise.all([server.stop(), cluster.stop(), sentinel.stop()]))

const nodes = () => cluster.primaries.map(({ host, port }) => ({ host, port }))
const url = (port = server.port) => `redis://127.0.0.1:${port}`

/** As the guide shows it. */
const RECOMMENDED: readonly [string, MakeRedisClient][] = [
  ['createClient', () => createClient({ ...clientOptions.nodeRedis, url: url() })],
  [
    'createCluster',
    () =>
      createCluster({
        ...clientOptions.nodeRedisCluster,
        rootNodes: nodes().map(socket => ({ socket })),
      }),
  ],
  [
    'createSentinel',
    () =>
      createSentinel({
        ...clientOptions.nodeRedisSentinel,
        name: sentinel.masterName,
        sentinelRootNodes: [...sentinel.sentinels],
      }),
  ],
  ['new Redis', () => new Redis(url(), clientOptions.ioredis)],
  [
    'new Redis behind sentinels',
    () =>
      new Redis({ ...clientOptions.ioredis, name: sentinel.masterName, sentinels: [...sentinel.sentinels] }),
  ],
  ['new Cluster', () => new Cluster(nodes(), clientOptions.ioredisCluster)],
]

/** A client with the defaults of its library, some of which connect by themselves. */
const PLAIN: readonly [string, (port: number) => MakeRedisClient][] = [
  ['createClient', port => () => createClient({ url: url(port) })],
  ['new Redis', port => () => new Redis(url(port))],
]

describe('a store whose clients a function makes', () => {
  it.each(RECOMMENDED)('a store works with what the function makes: %s', async (name, make) => {
    const store = directRedisStore(make, { deadlineMs: 5_000 })
    await expectToWork(store, `user:made-${name.replaceAll(' ', '-')}`)
    await store.close()
  })

  it.each(PLAIN)('a store makes a new client when a connection is lost: %s', async (_, make) => {
    let made = 0
    const store = directRedisStore(
      () => {
        made++
        return make(server.port)()
      },
      { deadlineMs: 500 },
    )
    await store.ready()
    for (let round = 0; round < 3; round++) {
      await waitUntil('it decides', async () => (await askStore(store, one('user:killed'))).charged === 0)
      expect(made).toBe(round + 1)
      await sendCommand(server.port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      await waitUntil('another was made', () => made === round + 2)
    }
    await waitUntil('it decides', async () => (await askStore(store, one('user:killed'))).charged === 0)
    await store.close()
    const { connected_clients: connected } = await readInfo(server.port, 'INFO', 'clients')
    expect(Number(connected)).toBe(1)
  })

  it.each(PLAIN)(
    'a lost reply is charged once, whatever the client would do about it: %s',
    async (name, make) => {
      const proxy = await startTcpProxy(server)
      const store = directRedisStore(make(proxy.port), { deadlineMs: 100 })
      await store.ready()
      await askStore(store, one('user:warm-up'))
      for (let round = 0; round < 5; round++) {
        proxy.dropReplies({ thenResetAfterMs: 5 })
        const calls = Array.from({ length: 10 }, (_, call) =>
          askStore(store, one(`user:${name}-${round}-${call}`)),
        )
        const outcomes = await Promise.allSettled(calls)
        expect(outcomes.map(({ status }) => status)).toEqual(calls.map(() => 'rejected'))
        // Nothing may be sent while it is away and executed when it is back.
        await expect(askStore(store, one(`user:${name}-away`))).rejects.toThrow('not connected')
        proxy.forward()
        await waitUntil('it answers again', async () =>
          Boolean(await askStore(store, one('user:back'), true)),
        )
      }
      await store.close()
      await proxy.close()
      const counts = [...(await countCharges([server.port]))].filter(([key]) =>
        key.includes(`{user:${name}-`),
      )
      expect(counts.filter(([, count]) => count !== 1)).toEqual([])
      expect(counts.filter(([key]) => key.includes('-away'))).toEqual([])
      expect(counts.length).toBeGreaterThan(25)
    },
  )

  it('a function may give each client the credentials of the hour', async () => {
    await sendCommand(server.port, 'ACL', 'SETUSER', 'hourly', 'on', '>first', '~*', '+@all')
    let password = 'first'
    const store = directRedisStore(() => createClient({ url: url(), username: 'hourly', password }), {
      deadlineMs: 500,
    })
    await waitUntil('it decides', async () => (await askStore(store, one('user:hourly'))).charged === 0)
    await sendCommand(server.port, 'ACL', 'SETUSER', 'hourly', 'resetpass', '>second')
    await sendCommand(server.port, 'CLIENT', 'KILL', 'USER', 'hourly')
    await waitUntil('the old password is rejected', async () => {
      const error = await Promise.resolve(askStore(store, one('user:hourly'))).catch(
        (reason: Error) => reason,
      )
      return error instanceof Error && error.message.includes('WRONGPASS')
    })
    password = 'second'
    await waitUntil('it decides again', async () => (await askStore(store, one('user:hourly'))).charged === 0)
    await store.close()
  })

  it.each<[string, () => unknown, object]>([
    ['no client', () => 'redis://:canary@host', { got: 'a value of type string' }],
    ['a promise of one', async () => createClient(), { got: 'a value of type object' }],
  ])('a function that returns %s is rejected', (_, make, rejection) => {
    const expected = 'a function that returns a node-redis or ioredis client'
    expect(() => redisStore(make as MakeRedisClient)).toThrow(
      expect.objectContaining({
        code: 'ERR_HEADGATE_INVALID_OPTION',
        field: 'client',
        expected,
        ...rejection,
      }),
    )
  })

  it('a client that is to be shared is not made by a function', () => {
    const make: RedisClient = () => createClient()
    expect(() => redisStore(make, { shared: true })).toThrow(expect.objectContaining({ field: 'shared' }))
  })

  it('a function that returns the same client again is reported when a new one is needed', async () => {
    const client = new Redis(url())
    const store = directRedisStore(() => client, { deadlineMs: 500 })
    await waitUntil('it decides', async () => (await askStore(store, one('user:same'))).charged === 0)
    await sendCommand(server.port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await waitUntil('the calls say why', async () => {
      const error = await Promise.resolve(askStore(store, one('user:same'))).catch((reason: Error) => reason)
      return error instanceof Error && error.message.includes('a function that makes a new client each time')
    })
    await store.close()
  })
})
