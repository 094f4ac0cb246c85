/** What a server does not know yet takes one round trip like everything else: the deadline may leave no time for a second. */
import { afterEach, describe, expect, it } from 'vitest'
import { concurrency, createLimiter, quota, slidingWindowLog, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import type { RedisClient } from '../../src/store/redis/connection-of.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { waitUntil } from '../support/wait-until.ts'
import { clusterClient, LIBRARIES, singleClient } from './topologies.ts'

const SILENT = { info() {}, warn() {}, error() {} }
const policies = {
  log: slidingWindowLog({ limit: 1_000, window: '1h' }),
  both: [tokenBucket({ capacity: 1_000, refillPerSecond: 1 }), quota({ limit: 1_000, per: 'month' })],
  permits: concurrency({ limit: 1_000 }),
}

const cleanUps: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function open(client: RedisClient) {
  const store = redisStore(client, { deadlineMs: 5_000, logger: SILENT })
  const limiter = createLimiter({ store, policies })
  cleanUps.push(() => limiter.close())
  expect(await store.ready()).toBe(true)
  return limiter
}

/** How often the server was asked for a script that it did not know. */
async function unknownScripts(port: number): Promise<number> {
  const info = String(await sendCommand(port, 'INFO', 'errorstats'))
  return Number(/errorstat_NOSCRIPT:count=(\d+)/.exec(info)?.[1] ?? 0)
}

async function askEverything(limiter: Awaited<ReturnType<typeof open>>, subject: string): Promise<void> {
  for (const policy of ['log', 'both', 'permits'] as const) {
    const decision = await limiter.check(subject, { policy })
    expect(decision).toMatchObject({ allowed: true, source: 'redis' })
    await limiter.peek(subject, { policy })
    if (policy === 'permits') await decision.release()
    else await limiter.refund(decision)
    await limiter.reset(subject, { policy })
  }
}

describe.each(LIBRARIES)('with %s', library => {
  it('a server without scripts is asked each for the first time without hearing that it is missing', async () => {
    const server = await startRedis()
    cleanUps.push(() => server.stop())
    const limiter = await open(singleClient(server.port)(library).client)
    await askEverything(limiter, 'user:1')
    expect(await unknownScripts(server.port)).toBe(0)

    server.kill('SIGKILL')
    await server.exited
    const next = await startRedis({ port: server.port })
    cleanUps.push(() => next.stop())
    const isBack = async () => (await limiter.check('user:2', { policy: 'log' })).source === 'redis'
    await waitUntil('Redis decides again', isBack, { timeoutMs: 15_000 })
    await askEverything(limiter, 'user:1')
    expect(await unknownScripts(next.port)).toBe(0)
  })

  it('so is every node of a cluster', async () => {
    const cluster = await startCluster({ primaries: 3, replicasPerPrimary: 0 })
    cleanUps.push(() => cluster.stop())
    const limiter = await open(clusterClient(cluster)(library).client)
    for (let user = 0; user < 30; user++) await askEverything(limiter, `user:${user}`)
    expect(await Promise.all(cluster.primaries.map(({ port }) => unknownScripts(port)))).toEqual([0, 0, 0])
  })
})
