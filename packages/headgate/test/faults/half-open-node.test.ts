/** One node of a cluster is silently cut off: its connection is replaced, and the other nodes keep deciding. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { subjectsOn } from '../redis-clients/cluster-slots.ts'
import { clusterClient, LIBRARIES } from '../redis-clients/topologies.ts'
import { onTime } from '../support/on-time.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

let cluster: RedisCluster
let proxies: TcpProxy[]
beforeAll(async () => {
  cluster = await startCluster({ replicasPerPrimary: 0 })
  proxies = await Promise.all(cluster.nodes.map(node => startTcpProxy(node)))
})
afterAll(async () => {
  await Promise.all(proxies.map(proxy => proxy.close()))
  await cluster.stop()
})

describe.each(LIBRARIES)('with %s', library => {
  it('a silent node’s connection is replaced, and the node is found again when the network is back', () =>
    onTime(cutOff))

  async function cutOff(): Promise<void> {
    const through = Object.fromEntries(
      cluster.nodes.map((node, index) => [
        `${node.host}:${node.port}`,
        { host: node.host, port: (proxies[index] as TcpProxy).port },
      ]),
    )
    const options = { ioredis: { natMap: through }, nodeRedis: { nodeAddressMap: through } }
    const store = redisStore(clusterClient(cluster, options)(library).client, {
      deadlineMs: 200,
      probeAfterMs: 200,
      logEveryMs: 86_400_000,
      onWarning: () => {},
    })
    const limiter = createLimiter({
      store,
      policies: { api: slidingWindowLog({ limit: 1_000_000, window: '1h' }) },
    })
    await store.ready()
    const [cut, ...others] = await Promise.all(
      cluster.primaries.map(async node => String((await subjectsOn(node, 1, library))[0])),
    )
    const source = async (subject: string | undefined): Promise<string> =>
      (await limiter.check(subject as `user:${string}`, { policy: 'api' })).source
    for (const subject of [cut, ...others]) {
      await waitUntil('every node decides', async () => (await source(subject)) === 'redis')
    }

    const [proxy] = proxies as [TcpProxy]
    proxy.blackhole()
    try {
      for (let time = 0; time < 8; time++) expect(await source(cut)).toBe('local')
      const until = performance.now() + 2_000
      while (performance.now() < until) {
        expect(await source(cut)).toBe('local')
        for (const subject of others) expect(await source(subject)).toBe('redis')
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    } finally {
      proxy.forward()
    }
    await waitUntil('the node decides again', async () => (await source(cut)) === 'redis', {
      timeoutMs: 3_000,
    })
    await limiter.close()
  }
})
