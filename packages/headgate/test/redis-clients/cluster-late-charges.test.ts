/** What a quota admitted while a node of a cluster was away, charged when it is back: each slot by itself. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter, quota, slidingWindowLog } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { type ClusterNode, type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { waitUntil } from '../support/wait-until.ts'
import { subjectsOn } from './cluster-slots.ts'
import { clusterClient, LIBRARIES, type Library } from './topologies.ts'

const policies = {
  rate: slidingWindowLog({ limit: 1_000_000, window: '1h' }),
  plan: quota({ limit: 1_000_000, per: 'year' }),
}
const SILENT = { info() {}, warn() {}, error() {} }
const PATIENCE = { timeoutMs: 15_000 }

let cluster: RedisCluster
let frozen: ClusterNode
let well: ClusterNode
const cleanUps: (() => Promise<void> | void)[] = []

beforeAll(async () => {
  // A frozen node is away for this store, and not for the other nodes.
  cluster = await startCluster({ primaries: 3, replicasPerPrimary: 0, nodeTimeoutMs: 60_000 })
  ;[frozen, well] = cluster.primaries as [ClusterNode, ClusterNode]
})
afterAll(() => cluster.stop())
afterEach(async () => {
  frozen.kill('SIGCONT')
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function setUp(library: Library) {
  const store = redisStore(clusterClient(cluster)(library).client, {
    deadlineMs: 500,
    processes: 1,
    prefix: `late-${library}`,
    logger: SILENT,
  })
  const limiter = createLimiter({ store, policies })
  cleanUps.push(() => limiter.close())
  await store.ready()
  const [scout, ...theirs] = (await subjectsOn(frozen, 21, library)) as [string, ...string[]]
  const [other] = (await subjectsOn(well, 1, library)) as [string]
  const used = async (subject: string) => (await limiter.usage(subject, { policy: 'plan' }))[0]?.used
  /** Requests of somebody else find out that the node is away. */
  const freeze = async () => {
    frozen.kill('SIGSTOP')
    await waitUntil(
      'the node is known to be away',
      async () => {
        await limiter.check(scout, { policy: 'rate' })
        return Object.values(store.health().breakers).includes('open')
      },
      PATIENCE,
    )
  }
  const charged = (units: number) =>
    waitUntil(`${units} units are charged`, () => store.health().lateUnits >= units, PATIENCE)
  return { store, limiter, theirs, other, used, freeze, charged }
}

describe.each(LIBRARIES)('with %s', library => {
  it('units of callers in many slots of a node that was frozen are charged exactly once when it is back', async () => {
    const { store, limiter, theirs, other, used, freeze, charged } = await setUp(library)
    for (const subject of [...theirs, other]) await limiter.check(subject, { policy: 'plan', cost: 100 })
    const usedBefore = await Promise.all([...theirs, other].map(used))

    await freeze()
    for (let time = 0; time < 3; time++) {
      const decisions = await Promise.all(theirs.map(one => limiter.check(one, { policy: 'plan', cost: 2 })))
      expect(new Set(decisions.map(({ allowed, source }) => `${allowed} ${source}`))).toEqual(
        new Set(['true local']),
      )
    }
    expect((await limiter.check(other, { policy: 'plan', cost: 5 })).source).toBe('redis')

    frozen.kill('SIGCONT')
    await charged(6 * theirs.length)
    const usedAfter = await Promise.all([...theirs, other].map(used))
    expect(usedAfter.map((units, index) => (units ?? 0) - (usedBefore[index] ?? 0))).toEqual([
      ...theirs.map(() => 6),
      5,
    ])
    expect(store.health().droppedUnits).toBe(0)
  })

  it('a request of two slots is charged to both, to the one that is there at once', async () => {
    const { store, limiter, theirs, other, used, freeze, charged } = await setUp(library)
    const [away] = theirs as [string]
    const both = { policy: 'plan', cost: 7, also: [{ subject: away, policy: 'plan' }] } as const
    await limiter.check(other, both)
    const before = await Promise.all([other, away].map(used))

    await freeze()
    expect(await limiter.check(other, both)).toMatchObject({ allowed: true, source: 'local' })
    await charged(7)
    expect(await used(other)).toBe((before[0] ?? 0) + 7)

    frozen.kill('SIGCONT')
    await charged(14)
    expect(await used(away)).toBe((before[1] ?? 0) + 7)
    expect(await used(other)).toBe((before[0] ?? 0) + 7)
    expect(store.health()).toMatchObject({ droppedUnits: 0 })
  })
})
