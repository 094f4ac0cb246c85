import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { type Answer, askStore, type Question, type Verdict } from '../../src/store/ask-store.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { openConnection, sendCommand } from '../support/resp.ts'
import { moveSlots, slotOf } from './cluster-slots.ts'
import { startLoad } from './load.ts'
import { all, check, LOG } from './questions.ts'
import { countCharges } from './server-count.ts'
import { clusterClient, LIBRARIES } from './topologies.ts'

const DEADLINE_MS = 5_000
const GLOBAL = slidingWindowLog({ limit: 30, window: '1h' })
const TOTAL = slidingWindowLog({ limit: 1_000_000, window: '2h' })
const TENANT = slidingWindowLog({ limit: 50, window: '1h' })

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())

/** Returns a function that yields numbers below `below`, the same ones for the same seed. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
}

/** A charged and refunded bucket is written twice, and each time a fraction of a micro-token is rounded up. */
const ROUNDING_US = 20

function expectSame(answer: Answer, expected: Answer): void {
  const bare = ({ allowed, remaining, chargedAtUs }: Verdict) => ({ allowed, remaining, chargedAtUs })
  const verdicts = ({ verdicts, shadow }: Answer) => [...verdicts, shadow].flat()
  expect(answer.charged).toBe(expected.charged)
  expect(answer.verdicts.map(list => list.length)).toEqual(expected.verdicts.map(list => list.length))
  expect(verdicts(answer).map(bare)).toEqual(verdicts(expected).map(bare))
  for (const [index, verdict] of verdicts(answer).entries()) {
    for (const time of ['retryAfterUs', 'resetAfterUs'] as const) {
      const due = verdicts(expected)[index]?.[time] ?? Number.NaN
      if (verdict[time] === due) continue
      expect(Math.abs(verdict[time] - due)).toBeLessThanOrEqual(ROUNDING_US)
    }
  }
}

describe.each(LIBRARIES)('questions over several slots, with %s', library => {
  const ports = () => cluster.primaries.map(({ port }) => port)

  it('the subjects of the tests lie in different slots', async () => {
    const connection = await openConnection(ports()[0] ?? 0)
    const slots = await Promise.all(
      ['user:1', 'tenant:acme', 'internal:global'].map(subject => slotOf(connection, subject)),
    )
    connection.close()
    expect(new Set(slots).size).toBe(3)
  })

  it('questions over several slots never exceed a limit under concurrency, and give back what another slot denied', async () => {
    const store = directRedisStore(clusterClient(cluster)(library).client, { deadlineMs: DEADLINE_MS })
    const question = (user: number): Question =>
      all(
        check(`user:${library}-${user}`),
        check(`tenant:${library}`, TENANT),
        check(`internal:${library}`, GLOBAL),
      )
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, user) => askStore(store, question(user))),
    )
    let admitted = answers.filter(({ charged }) => charged === 0).length
    expect(admitted).toBeLessThanOrEqual(30)

    // Crossing requests may all have been denied; nothing of them remains, so the rest of the limit is available.
    for (let user = 300; ; user++) {
      const { charged } = await askStore(store, question(user))
      if (charged !== 0) break
      admitted++
    }
    expect(admitted).toBe(30)

    const counts = [...(await countCharges(ports()))].filter(([key]) => key.includes(library))
    const of = (type: string) =>
      counts.filter(([key]) => key.includes(`{${type}:`)).reduce((sum, [, count]) => sum + count, 0)
    expect({ user: of('user'), tenant: of('tenant'), global: of('internal') }).toEqual({
      user: 30,
      tenant: 30,
      global: 30,
    })
    await store.close()
  })

  it('questions over several slots are answered as the embedded store answers them', async () => {
    let nowUs = 1_800_000_000_000_000
    const clock = { nowUs: () => nowUs, unixMs: () => Math.floor(nowUs / 1000) }
    const redis = directRedisStore(clusterClient(cluster)(library).client, {
      deadlineMs: DEADLINE_MS,
      prefix: `same-${library}`,
      testClockUs: clock.nowUs,
    })
    const embedded = memoryStore({ clock })
    const random = randomFrom(7)
    const limits = [
      slidingWindowLog({ limit: 6, window: '10s' }),
      slidingWindowCounter({ limit: 8, window: '10s' }),
      tokenBucket({ capacity: 5, refillPerSecond: 0.5 }),
    ]
    const someChecks = () =>
      Array.from({ length: 1 + random(3) }, (_, index) =>
        check(`user:${index}-${random(2)}`, limits[random(3)], random(4)),
      )
    for (let step = 0; step < 150; step++) {
      nowUs += random(1_500_000)
      const question: Question = {
        alternatives: Array.from({ length: 1 + random(2) }, someChecks),
        shadow: random(3) === 0 ? someChecks() : [],
      }
      expectSame(await askStore(redis, question, true), await askStore(embedded, question, true))
      expectSame(await askStore(redis, question), await askStore(embedded, question))
    }
    await redis.close()
  })

  it('a name with braces chooses no slot, and no script mixes slots for it', async () => {
    const store = directRedisStore(clusterClient(cluster)(library).client, {
      deadlineMs: DEADLINE_MS,
      prefix: `braces-${library}`,
    })
    const limiter = createLimiter({
      store,
      policies: { api: [slidingWindowLog({ limit: 1, window: '1m' }), TOTAL] },
    })
    const ids = ['{x}', '}{x}', '{', '}', '{}', 'a{x}b', '{user:1}', '}:{x}:', '{x}'.repeat(30)]
    for (const id of ids) {
      const asked = [
        { type: 'user', id },
        { type: '{x}', id },
      ] as const
      for (const subject of asked) {
        const ask = { policy: 'api', scope: id } as const
        expect(await limiter.check(subject, ask)).toMatchObject({ allowed: true, source: 'redis' })
        expect(await limiter.check(subject, ask)).toMatchObject({ allowed: false, source: 'redis' })
      }
    }
    const keys = [...(await countCharges(ports())).keys()].filter(key => key.startsWith(`braces-${library}:`))
    expect(keys).toHaveLength(ids.length * 2 * 2)
    // Each key has one pair of braces, around the whole subject, so that nobody gets into the slot of `x` by
    // writing it.
    for (const key of keys) expect(key).toMatch(/^[^{}]*\{[^{}]+\}[^{}]*$/)
    const connection = await openConnection(ports()[0] ?? 0)
    const slots = await Promise.all(keys.map(key => connection.send('CLUSTER', 'KEYSLOT', key)))
    const chosen = await connection.send('CLUSTER', 'KEYSLOT', 'x')
    connection.close()
    expect(slots).not.toContain(chosen)
    expect(new Set(slots).size).toBe(ids.length * 2)
    await limiter.close()
  })
})

describe('moving slots under load', () => {
  it('moving slots under load loses no charge, makes none twice and fails no call', async () => {
    const [from, to] = cluster.primaries
    if (from === undefined || to === undefined) throw new Error('the cluster has too few primaries')
    for (const { port } of cluster.primaries) await sendCommand(port, 'FLUSHALL')
    const connection = await openConnection(from.port)
    const subjects = Array.from({ length: 900 }, (_, id) => `user:moving-${id}`)
    const slots = new Set<number>()
    for (const subject of subjects) {
      const slot = await slotOf(connection, subject)
      if (slot >= from.slots[0] && slot <= from.slots[1]) slots.add(slot)
    }
    connection.close()
    expect(slots.size).toBeGreaterThan(200)

    // Two keys for each subject: in the middle of a move they are on both sides.
    const questions = subjects.map(subject => all(check(subject, LOG), check(subject, TOTAL)))
    const stores = LIBRARIES.map(library =>
      directRedisStore(clusterClient(cluster)(library).client, { deadlineMs: DEADLINE_MS }),
    )
    await Promise.all(stores.map(store => store.ready()))
    const loads = stores.map(store => startLoad(store, questions, { deadlineMs: DEADLINE_MS, perTick: 2 }))
    await moveSlots(cluster, [...slots], { from, to })
    const results = await Promise.all(loads.map(load => load.stop()))
    await Promise.all(stores.map(store => store.close()))

    expect(results.flatMap(({ errors }) => errors)).toEqual([])
    const sent = results.reduce((sum, result) => sum + result.sent, 0)
    const acknowledged = results.reduce((sum, result) => sum + result.acknowledged, 0)
    expect(acknowledged).toBe(sent)
    const counts = await countCharges(cluster.primaries.map(({ port }) => port))
    for (const name of [LOG.id, TOTAL.id]) {
      const charged = [...counts].filter(([key]) => key.endsWith(`:test.${name}`))
      expect(charged.reduce((sum, [, count]) => sum + count, 0)).toBe(sent)
    }
  })
})
