/** Permits and settling on a cluster, where the subjects of a request are in different slots. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { concurrency, createLimiter, slidingWindowLog, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { openConnection } from '../support/resp.ts'
import { waitUntil } from '../support/wait-until.ts'
import { slotOf } from './cluster-slots.ts'
import { clusterClient, LIBRARIES, type Library } from './topologies.ts'

const HOLD_FOR_MS = 2_000
const SILENT = { info() {}, warn() {}, error() {} }
const policies = {
  user: [
    slidingWindowLog({ limit: 1_000, window: '1h' }),
    concurrency({ limit: 4, holdFor: `${HOLD_FOR_MS}ms` }),
  ],
  tenant: concurrency({ limit: 6, holdFor: `${HOLD_FOR_MS}ms` }),
  tokens: tokenBucket({ capacity: 1_000, refillPerSecond: 0.001 }),
  quota: slidingWindowLog({ limit: 1_000, window: '1h' }),
  one: concurrency({ limit: 1, holdFor: `${HOLD_FOR_MS}ms` }),
}

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster({ replicasPerPrimary: 0 })
})
afterAll(() => cluster.stop())

type Options = Parameters<typeof redisStore>[1]

async function limiterOn(library: Library, options: Options = {}) {
  const { client, connect } = clusterClient(cluster)(library)
  await connect()
  const store = redisStore(client, { deadlineMs: 5_000, logger: SILENT, ...options })
  return createLimiter({ store, policies })
}

/** Returns a subject's primary and slot. */
async function whereIs(subject: string) {
  const [first] = cluster.primaries
  const connection = await openConnection(first?.port ?? 0)
  const slot = await slotOf(connection, subject)
  connection.close()
  const node = cluster.primaries.find(({ slots: [from, to] }) => slot >= from && slot <= to)
  if (node === undefined) throw new Error(`nobody has slot ${slot}`)
  return { slot, node }
}

describe.each(LIBRARIES)('on a cluster, with %s', library => {
  it('permits of two subjects in two slots are taken together or not at all, and are never more than either limit', async () => {
    const [one, other] = await Promise.all([limiterOn(library), limiterOn(library)])
    const users = [`user:${library}-1`, `user:${library}-2`, `user:${library}-3`] as const
    const tenant = `tenant:${library}` as const
    const slots = await Promise.all([...users, tenant].map(async subject => (await whereIs(subject)).slot))
    expect(new Set(slots).size).toBe(4)
    const ask = (index: number) =>
      (index % 2 === 0 ? one : other).check(users[index % 3] as 'user:1', {
        policy: 'user',
        also: [{ subject: tenant, policy: 'tenant' }],
      })
    const decisions = await Promise.all(Array.from({ length: 60 }, (_, index) => ask(index)))
    const held = decisions.filter(({ allowed }) => allowed)
    expect(held.length).toBeLessThanOrEqual(6)
    // A permit that one slot gave and another denied is given back: in the end the tenant can have all its permits.
    await waitUntil('the tenant has six permits', async () => {
      while (held.length < 6) {
        const decision = await ask(held.length)
        if (!decision.allowed) return false
        held.push(decision)
      }
      return true
    })
    expect((await ask(0)).allowed).toBe(false)
    await Promise.all(held.map(decision => decision.release()))
    for (const user of users) {
      const left = async () =>
        (await one.peek(user, { policy: 'user' })).verdicts.map(({ remaining }) => remaining)
      await expect.poll(async () => (await left())[1]).toBe(4)
      // Nothing is charged for the denied requests either.
      await expect.poll(async () => (await left())[0]).toBeGreaterThanOrEqual(1_000 - held.length - 1)
    }
    await expect.poll(async () => (await one.peek(tenant, { policy: 'tenant' })).remaining).toBe(6)
    await Promise.all([one.close(), other.close()])
  })

  it('a reservation of two subjects in two slots settles in both, for less and for more', async () => {
    const limiter = await limiterOn(library)
    const [user, tenant] = [`user:${library}-model`, `tenant:${library}-model`] as const
    const left = async () => [
      (await limiter.peek(user, { policy: 'tokens' })).remaining,
      (await limiter.peek(tenant, { policy: 'quota' })).remaining,
    ]
    const reserve = (cost: number) =>
      limiter.reserve(user, { policy: 'tokens', cost, also: [{ subject: tenant, policy: 'quota' }] })
    const less = await reserve(400)
    expect(await left()).toEqual([600, 600])
    await less.settle(100)
    expect(await left()).toEqual([900, 900])
    await less.settle(0)
    expect(await left()).toEqual([900, 900])
    const more = await reserve(100)
    await more.settle(950)
    const [tokens, quota] = [
      await limiter.check(user, { policy: 'tokens' }),
      await limiter.check(tenant, { policy: 'quota' }),
    ]
    expect([tokens.allowed, quota.allowed]).toEqual([false, false])
    await limiter.close()
  })

  it('a permit taken just before its node freezes is not lost for longer than holdFor', async () => {
    const subject = `user:${library}-frozen` as const
    const { node } = await whereIs(subject)
    const limiter = await limiterOn(library, { deadlineMs: 30, probeAfterMs: 100, onStoreFailure: 'closed' })
    // Connected, so that the question is sent now.
    await waitUntil('the node decides', async () => {
      return (await limiter.peek(subject, { policy: 'one' })).source === 'redis'
    })
    const asked = limiter.check(subject, { policy: 'one' })
    await new Promise(resolve => setImmediate(resolve))
    process.kill(node.pid, 'SIGSTOP')
    const unknown = await asked.finally(() => process.kill(node.pid, 'SIGCONT'))
    const thawedAt = performance.now()
    await unknown.release()
    await waitUntil('a request is admitted by Redis', async () => {
      const decision = await limiter.check(subject, { policy: 'one' })
      return decision.allowed && decision.source === 'redis'
    })
    expect(performance.now() - thawedAt).toBeLessThan(HOLD_FOR_MS + 1_500)
    await limiter.close()
  })
})
