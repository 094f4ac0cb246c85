import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askStore } from '../../src/store/ask-store.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { findFreePort } from '../support/free-port.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { readInfo } from '../support/redis-info.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { type SentinelSetup, startSentinel } from '../support/redis-sentinel.ts'
import { sendCommand } from '../support/resp.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'
import { expectToWork } from './expect-to-work.ts'
import { LOG, one } from './questions.ts'
import {
  clusterClient,
  LIBRARIES,
  type MakeClient,
  MODES,
  sentinelClient,
  singleClient,
} from './topologies.ts'

const SHORT_LIVED = fileURLToPath(new URL('short-lived.mjs', import.meta.url))
const DEADLINE_MS = 5_000

interface Servers {
  readonly make: MakeClient
  /** The same servers behind addresses where nothing listens until `open` is called. */
  makeLate(): Promise<{ make: MakeClient; open(): Promise<TcpProxy[]> }>
  /** For a separate process. */
  readonly address: object
  /** Where decisions are made. */
  readonly ports: readonly number[]
  stop(): Promise<void>
}

async function late(ports: readonly number[]): Promise<{ free: number[]; open(): Promise<TcpProxy[]> }> {
  const free = await Promise.all(ports.map(() => findFreePort()))
  return {
    free,
    open: () =>
      Promise.all(ports.map((port, index) => startTcpProxy({ port, listenOn: free[index] as number }))),
  }
}

async function single(): Promise<Servers> {
  const server: RedisProcess = await startRedis()
  return {
    make: singleClient(server.port),
    async makeLate() {
      const { free, open } = await late([server.port])
      return { make: singleClient(free[0] as number), open }
    },
    address: { port: server.port },
    ports: [server.port],
    stop: () => server.stop(),
  }
}

async function cluster(): Promise<Servers> {
  const servers: RedisCluster = await startCluster()
  const ports = servers.primaries.map(({ port }) => port)
  return {
    make: clusterClient(servers),
    async makeLate() {
      const { free, open } = await late(ports)
      const primaries = free.map(port => ({
        host: '127.0.0.1',
        port,
      })) as unknown as RedisCluster['primaries']
      return { make: clusterClient({ primaries }), open }
    },
    address: { ports },
    ports,
    stop: () => servers.stop(),
  }
}

async function sentinel(): Promise<Servers> {
  const servers: SentinelSetup = await startSentinel()
  const { masterName, sentinels } = servers
  return {
    make: sentinelClient(servers),
    async makeLate() {
      const { free, open } = await late(sentinels.map(({ port }) => port))
      return {
        make: sentinelClient({ masterName, sentinels: free.map(port => ({ host: '127.0.0.1', port })) }),
        open,
      }
    },
    address: { sentinels, name: masterName },
    ports: [servers.primary.port],
    stop: () => servers.stop(),
  }
}

async function connectionsOf(ports: readonly number[]): Promise<number> {
  const infos = await Promise.all(ports.map(port => readInfo(port, 'INFO', 'clients')))
  return infos.reduce((sum, info) => sum + Number(info.connected_clients), 0)
}

for (const start of [single, cluster, sentinel]) {
  describe(`a ${start.name} set-up`, () => {
    let servers: Servers
    beforeAll(async () => {
      servers = await start()
    })
    afterAll(() => servers.stop())

    describe.each(LIBRARIES)('with %s', library => {
      it.each(MODES)('a store decides, peeks, refunds and resets by %s', async use => {
        const callers = servers.make(library)
        const store = directRedisStore(callers.client, { use, deadlineMs: DEADLINE_MS })
        await expectToWork(store, `user:${library}-${use}`)
        await store.close()
      })

      it('a store leaves a client that was not connected as it was', async () => {
        const callers = servers.make(library)
        const store = directRedisStore(callers.client, { deadlineMs: DEADLINE_MS })
        await askStore(store, one('user:1'))
        expect(callers.isOpen()).toBe(false)
        await store.close()
        expect(callers.isOpen()).toBe(false)
      })

      it('a store leaves a connected client connected, and nothing of its own behind', async () => {
        const callers = servers.make(library)
        await callers.connect()
        await callers.ping()
        // Clients of a cluster connect to more nodes in the background.
        let before = -1
        await waitUntil('the number of connections is steady', async () => {
          const last = before
          before = await connectionsOf(servers.ports)
          return last === before
        })
        const store = directRedisStore(callers.client, { deadlineMs: DEADLINE_MS })
        await askStore(store, one('user:1'))
        expect(await connectionsOf(servers.ports)).toBeGreaterThan(before)
        await store.close()
        await waitUntil(
          'our connections are gone',
          async () => (await connectionsOf(servers.ports)) <= before,
        )
        expect(await callers.ping()).toBeTruthy()
        await callers.close()
      })

      it('a store lets the process end after close', async () => {
        const job = { library, topology: start.name, ...servers.address }
        const options = { timeout: 60_000, killSignal: 'SIGKILL' } as const
        const { stdout, stderr } = await promisify(execFile)(
          process.execPath,
          [SHORT_LIVED, JSON.stringify(job)],
          options,
        )
        expect({ stdout, stderr }).toEqual({ stdout: 'scripts 0 redis\nfunctions 0 redis\n', stderr: '' })
      })

      it('a store works without a restart when Redis comes up after it', async () => {
        const { make, open } = await servers.makeLate()
        const callers = make(library)
        const store = directRedisStore(callers.client, { deadlineMs: 50 })
        await expect(askStore(store, one('user:early'))).rejects.toMatchObject({ code: 'ERR_HEADGATE_STORE' })
        const proxies = await open()
        await store.ready()
        expect((await askStore(store, one('user:late'))).charged).toBe(0)
        // Calls abandoned while Redis was away are not sent when it comes back.
        expect((await askStore(store, one('user:early'), true)).verdicts[0]?.[0]?.remaining).toBe(1_000_000)
        await store.close()
        await Promise.all(proxies.map(proxy => proxy.close()))
      })
    })
  })
}

it.each(LIBRARIES)(
  'every call says that there was no connection, whichever timer was first: %s',
  async library => {
    const { client } = singleClient(await findFreePort())(library)
    const store = directRedisStore(client, { deadlineMs: 20 })
    const calls: Promise<string>[] = []
    for (let call = 0; call < 300; call++) {
      calls.push(
        Promise.resolve(askStore(store, one('user:1'))).then(
          String,
          error => `${error.code} ${error.message}`,
        ),
      )
      await sleep(call % 3 === 0 ? 1 : 0)
    }
    const outcomes = new Set(await Promise.all(calls))
    await store.close()
    expect(outcomes.size).toBeGreaterThan(0)
    for (const outcome of outcomes) {
      expect(outcome).toMatch(
        /^ERR_HEADGATE_STORE redis: not connected \d+ ms after the start: connect ECONNREFUSED/,
      )
    }
  },
)

describe('the options of the caller', () => {
  describe.each(LIBRARIES)('%s', library => {
    it('connections of ours keep user, password and database of the caller’s options', async () => {
      const server = await startRedis()
      await sendCommand(server.port, 'ACL', 'SETUSER', 'limiter', 'on', '>pass:w@rd', '~*', '+@all')
      const make = singleClient(server.port, {
        ioredis: { username: 'limiter', password: 'pass:w@rd', db: 3 },
        nodeRedis: { username: 'limiter', password: 'pass:w@rd', database: 3 },
      })
      const store = directRedisStore(make(library).client, { deadlineMs: DEADLINE_MS })
      expect((await askStore(store, one('user:1'))).charged).toBe(0)
      const clients = String(await sendCommand(server.port, 'CLIENT', 'LIST')).split('\n')
      expect(clients.filter(line => line.includes(' user=limiter ') && line.includes(' db=3 '))).toHaveLength(
        1,
      )
      await store.close()
      await server.stop()
    })

    it('connections of ours read the options from the url as well', async () => {
      const server = await startRedis({ args: ['--requirepass', ''] })
      await sendCommand(server.port, 'CONFIG', 'SET', 'requirepass', 'secret')
      const url = `redis://:secret@127.0.0.1:${server.port}/2`
      const { Redis } = await import('ioredis')
      const { createClient } = await import('redis')
      const client = library === 'ioredis' ? new Redis(url, { lazyConnect: true }) : createClient({ url })
      const store = directRedisStore(client, { deadlineMs: DEADLINE_MS })
      expect((await askStore(store, one('user:1'))).charged).toBe(0)
      await store.close()
      await server.stop()
    })

    it('options of the caller do not prefix our keys: one subject is one key, whichever client asks', async () => {
      const server = await startRedis()
      const prefixed = singleClient(server.port, {
        ioredis: { keyPrefix: 'app:' },
        nodeRedis: { keyPrefix: 'app:' },
      })
      const plain = singleClient(server.port)
      for (const make of [prefixed, plain]) {
        const store = directRedisStore(make(library).client, { deadlineMs: DEADLINE_MS })
        await askStore(store, one('user:1'))
        await store.close()
      }
      expect(await sendCommand(server.port, 'KEYS', '*')).toEqual([
        `ratelimit:v2:{user:1}:global:test.${LOG.id}`,
      ])
      await server.stop()
    })
  })

  it.each(LIBRARIES)('connections of ours keep the password of the nodes of a cluster: %s', async library => {
    const servers = await startCluster({ primaries: 3, replicasPerPrimary: 0 })
    for (const { port } of servers.nodes) await sendCommand(port, 'CONFIG', 'SET', 'requirepass', 'secret')
    const make = clusterClient(servers, {
      ioredis: { redisOptions: { password: 'secret' } },
      nodeRedis: { defaults: { password: 'secret' } },
    })
    const store = directRedisStore(make(library).client, { deadlineMs: DEADLINE_MS })
    expect((await askStore(store, one('user:1'))).charged).toBe(0)
    await store.close()
    await servers.stop()
  })

  it.each(LIBRARIES)(
    'connections of ours keep the password of the primary behind sentinels: %s',
    async library => {
      const servers = await startSentinel({ replicas: 1, sentinels: 1 })
      await sendCommand(servers.primary.port, 'CONFIG', 'SET', 'requirepass', 'secret')
      const make = sentinelClient(servers, {
        ioredis: { password: 'secret' },
        nodeRedis: { nodeClientOptions: { password: 'secret' } },
      })
      const store = directRedisStore(make(library).client, { deadlineMs: DEADLINE_MS })
      expect((await askStore(store, one('user:1'))).charged).toBe(0)
      await store.close()
      await servers.stop()
    },
  )
})
