import { expect, it } from 'vitest'
import { askStore } from '../../src/store/ask-store.ts'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { onTime } from '../support/on-time.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { readInfo } from '../support/redis-info.ts'
import { startSentinel } from '../support/redis-sentinel.ts'
import { sendCommand } from '../support/resp.ts'
import { waitUntil } from '../support/wait-until.ts'
import { subjectsOn } from './cluster-slots.ts'
import { type LoadResult, startLoad } from './load.ts'
import { one } from './questions.ts'
import { countCharges } from './server-count.ts'
import { clusterClient, LIBRARIES, type MakeClient, MODES, sentinelClient } from './topologies.ts'

const DEADLINE_MS = 100
const NODE_TIMEOUT_MS = 2_000
const FOLLOWS_WITHIN_MS = 2_000

/** Opens every client in every mode, side by side, so that one failover serves them all. */
function openStores(make: MakeClient): { name: string; store: RedisStore }[] {
  return LIBRARIES.flatMap(library =>
    MODES.map(use => ({
      name: `${library}-${use}`,
      store: directRedisStore(make(library).client, { use, deadlineMs: DEADLINE_MS }),
    })),
  )
}

/** Returns how long after `sinceMs` the store decides again for each of the subjects. */
async function backAfterMs(
  { name, store }: { readonly name: string; readonly store: RedisStore },
  subjects: readonly string[],
  sinceMs: number,
): Promise<number> {
  await waitUntil(
    `the store of ${name} decides again`,
    async () => {
      for (const subject of subjects) await askStore(store, one(subject))
      return true
    },
    { everyMs: 20 },
  )
  return performance.now() - sinceMs
}

/** Returns how long after `sinceMs` the replica serves the slots of its dead primary. */
async function servedAfterMs(port: number, sinceMs: number): Promise<number> {
  await waitUntil('the replica is primary', async () => {
    const { cluster_state: state } = await readInfo(port, 'CLUSTER', 'INFO')
    const { role } = await readInfo(port, 'INFO', 'replication')
    return state === 'ok' && role === 'master'
  })
  return performance.now() - sinceMs
}

/** An abandoned call may have been executed all the same, but no more often than it was made. */
async function expectNoMoreThanSent(
  servers: readonly { readonly port: number }[],
  stores: readonly { readonly name: string }[],
  results: readonly LoadResult[],
): Promise<void> {
  const counts = await countCharges(servers.map(({ port }) => port))
  for (const [index, { name }] of stores.entries()) {
    const charged = [...counts]
      .filter(([key]) => key.includes(`{user:${name}-`))
      .reduce((sum, [, count]) => sum + count, 0)
    expect(charged).toBeGreaterThan(50)
    expect(charged).toBeLessThanOrEqual(results[index]?.sent ?? 0)
  }
}

const TIMEOUT_MS = 120_000

it(
  'every call settles in time when a primary of a cluster is killed, none is charged twice, and every store follows the slots within 2 s',
  () => onTime(killPrimary),
  TIMEOUT_MS,
)

async function killPrimary(): Promise<void> {
  const cluster = await startCluster({ nodeTimeoutMs: NODE_TIMEOUT_MS })
  try {
    const [doomed, ...others] = cluster.primaries
    if (doomed === undefined) throw new Error('the cluster has no primary')
    const stores = openStores(clusterClient(cluster))
    const loads = await Promise.all(
      stores.map(async ({ name, store }) => {
        await store.ready()
        const subjects = await Promise.all(cluster.primaries.map(node => subjectsOn(node, 10, name)))
        return startLoad(store, subjects.flat().map(one), { deadlineMs: DEADLINE_MS, everyMs: 5 })
      }),
    )
    const probes = await subjectsOn(doomed, 3, 'probe')
    await waitUntil('every store has decided', () => loads.every(load => load.result.acknowledged > 50))
    expect(await sendCommand(doomed.port, 'WAIT', 1, 1000)).toBe(1)

    doomed.kill('SIGKILL')
    const killedAt = performance.now()
    // Stores that start in the middle of the outage know the dead primary only by name.
    const born = openStores(clusterClient({ primaries: others }))
    const heir = cluster.replicas[0] as (typeof cluster.replicas)[0]
    const [servesAfterMs, ...after] = await Promise.all([
      servedAfterMs(heir.port, killedAt),
      ...[...stores, ...born].map(opened => backAfterMs(opened, probes, killedAt)),
    ])
    const results = await Promise.all(loads.map(load => load.stop()))
    await Promise.all([...stores, ...born].map(({ store }) => store.close()))

    // How long the nodes take to vote is up to them, and they may have to vote twice.
    expect(Math.max(...after) - servesAfterMs).toBeLessThan(FOLLOWS_WITHIN_MS)
    expect(results.map(({ late }) => late)).toEqual(results.map(() => 0))
    await expectNoMoreThanSent([...others, heir], stores, results)
  } finally {
    await cluster.stop()
  }
}

it(
  'every call settles in time when the primary behind sentinels is killed, none is charged twice, and the next decides within 6 s',
  () => onTime(killPrimaryBehindSentinels),
  TIMEOUT_MS,
)

async function killPrimaryBehindSentinels(): Promise<void> {
  const setup = await startSentinel({ downAfterMs: 1_000 })
  try {
    const stores = openStores(sentinelClient(setup))
    const loads = await Promise.all(
      stores.map(async ({ name, store }) => {
        await store.ready()
        const questions = Array.from({ length: 10 }, (_, id) => one(`user:${name}-${id}`))
        return startLoad(store, questions, { deadlineMs: DEADLINE_MS, everyMs: 5 })
      }),
    )
    await waitUntil('every store has decided', () => loads.every(load => load.result.acknowledged > 50))
    expect(await sendCommand(setup.primary.port, 'WAIT', 1, 1000)).toBe(1)

    setup.primary.kill('SIGKILL')
    const killedAt = performance.now()
    const born = openStores(sentinelClient(setup))
    const after = await Promise.all(
      [...stores, ...born].map(opened => backAfterMs(opened, ['user:probe'], killedAt)),
    )
    const results = await Promise.all(loads.map(load => load.stop()))
    await Promise.all([...stores, ...born].map(({ store }) => store.close()))

    expect(Math.max(...after)).toBeLessThan(6_000)
    expect(results.map(({ late }) => late)).toEqual(results.map(() => 0))
    await expectNoMoreThanSent(setup.replicas, stores, results)
  } finally {
    await setup.stop()
  }
}
