import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isHeadgateError } from '../../src/errors/headgate-error.js'
import { askStore } from '../../src/store/ask-store.ts'
import type { StoreWarning } from '../../src/store/redis/inspect.js'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { type SentinelSetup, startSentinel } from '../support/redis-sentinel.ts'
import { sendCommand } from '../support/resp.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'
import { watchDeadline } from './load.ts'
import { one } from './questions.ts'
import { countCharges, total } from './server-count.ts'
import { clusterClient, LIBRARIES, type MakeClient, sentinelClient, singleClient } from './topologies.ts'

const DEADLINE_MS = 60
const ROUNDS = 10
const CALLS = 30

interface Outcome {
  readonly acknowledged: boolean
  readonly late: boolean
}

async function settle(store: RedisStore, subject: string): Promise<Outcome> {
  let late = false
  const settled = watchDeadline(DEADLINE_MS, () => {
    late = true
  })
  const acknowledged = await Promise.resolve(askStore(store, one(subject))).then(
    () => true,
    error => {
      if (!isHeadgateError(error)) throw error
      return false
    },
  )
  settled()
  return { acknowledged, late }
}

/** Sends while replies are lost and connections reset, in rounds with a pause in which the client recovers. */
async function loseReplies(store: RedisStore, proxies: readonly TcpProxy[], who: string): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (let round = 0; round < ROUNDS; round++) {
    for (const proxy of proxies) proxy.dropReplies({ thenResetAfterMs: 5 })
    const calls = Array.from({ length: CALLS }, (_, call) => settle(store, `user:${who}-${round}-${call}`))
    outcomes.push(...(await Promise.all(calls)))
    for (const proxy of proxies) proxy.forward()
    await waitUntil('the store answers again', async () => {
      // On a cluster every node must be back before the next round.
      const all = proxies.flatMap((_, index) => [index, index + 3, index + 6])
      await Promise.all(all.map(index => askStore(store, one(`user:${who}-back-${index}`), true)))
      return true
    })
  }
  return outcomes
}

interface Faulty {
  readonly make: MakeClient
  readonly proxies: readonly TcpProxy[]
  readonly ports: readonly number[]
  stop(): Promise<void>
}

async function single(): Promise<Faulty> {
  const server: RedisProcess = await startRedis()
  const proxy = await startTcpProxy(server)
  return {
    make: singleClient(proxy.port),
    proxies: [proxy],
    ports: [server.port],
    async stop() {
      await proxy.close()
      await server.stop()
    },
  }
}

async function cluster(): Promise<Faulty> {
  const servers: RedisCluster = await startCluster({ primaries: 3, replicasPerPrimary: 0 })
  const proxies = await Promise.all(servers.nodes.map(node => startTcpProxy(node)))
  const through = Object.fromEntries(
    servers.nodes.map((node, index) => [
      `${node.host}:${node.port}`,
      { host: node.host, port: proxies[index]?.port ?? 0 },
    ]),
  )
  return {
    make: clusterClient(servers, { ioredis: { natMap: through }, nodeRedis: { nodeAddressMap: through } }),
    proxies,
    ports: servers.nodes.map(({ port }) => port),
    async stop() {
      await Promise.all(proxies.map(proxy => proxy.close()))
      await servers.stop()
    },
  }
}

async function sentinel(): Promise<Faulty> {
  const servers: SentinelSetup = await startSentinel({ replicas: 1, sentinels: 1 })
  const proxy = await startTcpProxy(servers.primary)
  const through = { [`127.0.0.1:${servers.primary.port}`]: { host: '127.0.0.1', port: proxy.port } }
  return {
    make: sentinelClient(servers, { ioredis: { natMap: through }, nodeRedis: { nodeAddressMap: through } }),
    proxies: [proxy],
    ports: [servers.primary.port],
    async stop() {
      await proxy.close()
      await servers.stop()
    },
  }
}

for (const start of [single, cluster, sentinel]) {
  describe(`when replies are lost on a ${start.name}`, () => {
    let faulty: Faulty
    beforeAll(async () => {
      faulty = await start()
    })
    afterAll(() => faulty.stop())

    it.each(LIBRARIES)(
      '%s charges every call at most once and settles it in time when replies are lost',
      async library => {
        const store = directRedisStore(faulty.make(library).client, { deadlineMs: DEADLINE_MS })
        await store.ready()
        // The first call would lose the reply that its script is unknown, and charge nothing.
        for (let subject = 0; subject < 9; subject++) await askStore(store, one(`user:${subject}`))
        await Promise.all(faulty.ports.map(port => sendCommand(port, 'FLUSHALL')))
        const droppedBefore = faulty.proxies.reduce((sum, proxy) => sum + proxy.droppedReplies, 0)
        const outcomes = await loseReplies(store, faulty.proxies, library)
        await store.close()

        const dropped = faulty.proxies.reduce((sum, proxy) => sum + proxy.droppedReplies, 0) - droppedBefore
        expect(dropped).toBeGreaterThanOrEqual(ROUNDS)
        const counts = await countCharges(faulty.ports)
        expect([...counts].filter(([, count]) => count !== 1)).toEqual([])
        expect(total(counts)).toBeLessThanOrEqual(ROUNDS * CALLS)
        expect(total(counts)).toBeGreaterThan((ROUNDS * CALLS) / 2)
        expect(total(counts)).toBeGreaterThanOrEqual(outcomes.filter(outcome => outcome.acknowledged).length)
        expect(outcomes.filter(outcome => outcome.late)).toEqual([])
      },
    )
  })
}

describe('a client of the caller that is shared', () => {
  it('a shared ioredis client with default options may be charged twice, warns once with WARN_HEADGATE_SHARED_CLIENT and keeps its socket', async () => {
    const server = await startRedis()
    const proxy = await startTcpProxy(server)
    const client = new Redis({ host: '127.0.0.1', port: proxy.port })
    client.on('error', () => {})
    const warnings: StoreWarning[] = []
    const store = directRedisStore(client, {
      shared: true,
      deadlineMs: DEADLINE_MS,
      onWarning: warning => warnings.push(warning),
    })
    await store.ready()
    await askStore(store, one('user:warm-up'))

    proxy.dropReplies({ thenResetAfterMs: 5 })
    await expect(askStore(store, one('user:twice'))).rejects.toMatchObject({
      code: 'ERR_HEADGATE_STORE_TIMEOUT',
    })
    proxy.forward()
    await waitUntil('ioredis has sent it again', async () => {
      const counts = await countCharges([server.port])
      return [...counts].some(([key, count]) => key.includes('twice') && count === 2)
    })
    expect(warnings.map(({ code }) => code)).toEqual(['WARN_HEADGATE_SHARED_CLIENT'])

    const id = await client.client('ID')
    for (let call = 0; call < 20; call++) await askStore(store, one('user:twice'), true)
    proxy.blackhole()
    await Promise.all(
      Array.from({ length: 20 }, () =>
        Promise.resolve(askStore(store, one('user:slow'), true)).catch(() => {}),
      ),
    )
    expect(proxy.connections).toBe(1)
    proxy.forward()
    await store.close()
    expect(client.status).toBe('ready')
    // The black hole swallowed bytes, so the connection owes answers forever; opening a new one is up to the
    // caller.
    expect(proxy.connections).toBe(1)
    expect(Number(id)).toBeGreaterThan(0)
    client.disconnect()
    await proxy.close()
    await server.stop()
  })

  it('a shared client keeps working after the store is closed', async () => {
    const server = await startRedis()
    for (const library of LIBRARIES) {
      const callers = singleClient(server.port)(library)
      await callers.connect()
      const store = directRedisStore(callers.client, { shared: true, onWarning: () => {} })
      await store.ready()
      expect((await askStore(store, one(`user:${library}`))).charged).toBe(0)
      await store.close()
      expect(await callers.ping()).toBeTruthy()
      await callers.close()
    }
    await server.stop()
  })
})
