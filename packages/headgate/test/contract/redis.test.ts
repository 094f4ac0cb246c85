import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster, createSentinel } from 'redis'
import { afterAll, beforeAll, describe, it } from 'vitest'
import type { RedisClient } from '../../src/store/redis/connection-of.js'
import { storeContract } from '../../src/testing/store-contract.js'
import { directRedisStore } from '../support/direct-store.ts'
import { lendStores } from '../support/lent-stores.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis-process.ts'
import { startSentinel } from '../support/redis-sentinel.ts'

/** How a client library reaches a topology; the store makes its own connections from it. */
interface Topology {
  readonly ioredis: () => Redis | Cluster
  readonly nodeRedis: () => RedisClient
  stop(): Promise<void>
}

async function single(): Promise<Topology> {
  const server = await startRedis()
  return {
    ioredis: () => new Redis({ port: server.port, lazyConnect: true }),
    nodeRedis: () => createClient({ url: server.url }),
    stop: () => server.stop(),
  }
}

async function cluster(): Promise<Topology> {
  const servers = await startCluster()
  const ports = servers.primaries.map(({ port }) => port)
  return {
    ioredis: () =>
      new Cluster(
        ports.map(port => ({ port })),
        { lazyConnect: true },
      ),
    nodeRedis: () => createCluster({ rootNodes: ports.map(port => ({ url: `redis://127.0.0.1:${port}` })) }),
    stop: () => servers.stop(),
  }
}

async function sentinel(): Promise<Topology> {
  const servers = await startSentinel()
  const { masterName: name, sentinels } = servers
  return {
    ioredis: () => new Redis({ name, sentinels: [...sentinels], lazyConnect: true }),
    nodeRedis: () => createSentinel({ name, sentinelRootNodes: [...sentinels] }),
    stop: () => servers.stop(),
  }
}

for (const start of [single, cluster, sentinel]) {
  describe(`Redis keeps the contract: ${start.name}`, () => {
    let topology: Topology
    beforeAll(async () => {
      topology = await start()
    })
    afterAll(() => topology.stop())

    for (const library of ['ioredis', 'nodeRedis'] as const) {
      for (const use of ['scripts', 'functions'] as const) {
        describe(`${library}, ${use}`, () => {
          const stores = lendStores(testClockUs =>
            directRedisStore(topology[library](), { use, deadlineMs: 5_000, testClockUs }),
          )
          afterAll(stores.close)
          for (const { name, run } of storeContract({ shared: true, open: stores.lend })) it(name, run)
        })
      }
    }
  })
}
