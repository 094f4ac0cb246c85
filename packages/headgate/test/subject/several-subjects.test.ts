/** A request that is charged to several of its subjects at once: a user and its organisation. */
import { Redis } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { defineConfig } from '../../src/config.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import type { RedisClient } from '../../src/store/redis/connection-of.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import type { Store } from '../../src/store/store.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

const policies = {
  member: slidingWindowLog({ limit: 3, window: '1h' }),
  organisation: slidingWindowLog({ limit: 5, window: '1h' }),
}
const cleanUps: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

let server: RedisProcess
let cluster: RedisCluster
let opened = 0
beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster({ replicasPerPrimary: 0 })])
})
afterAll(() => Promise.all([server.stop(), cluster.stop()]))

async function readyStore(client: RedisClient): Promise<Store> {
  const store = redisStore(client, { deadlineMs: 2_000, prefix: `also${opened++}` })
  await store.ready()
  return store
}

const stores: Record<string, () => Promise<Store>> = {
  memory: async () => memoryStore(),
  redis() {
    const client = new Redis({ port: server.port, lazyConnect: true })
    cleanUps.push(() => client.disconnect())
    return readyStore(client)
  },
  cluster: () =>
    readyStore(
      createCluster({
        rootNodes: cluster.primaries.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
      }),
    ),
}

const fileOf = (changes: object = {}) =>
  defineConfig({
    policies,
    default: { policy: 'member' },
    rules: [
      {
        name: 'api',
        match: { path: '/api/*' },
        policy: 'member',
        also: [{ subject: 'Tenant', policy: 'organisation' }],
      },
    ],
    ...changes,
  })

type Ask = (user: number, tenant?: string) => Promise<{ allowed: boolean; policy: string }>

function byLimiter(store: Store): Ask {
  const limiter = createLimiter({ store, policies })
  cleanUps.push(() => limiter.close())
  return (user, tenant) =>
    limiter.check(`user:${user}`, {
      policy: 'member',
      ...(tenant && { also: [{ subject: `tenant:${tenant}`, policy: 'organisation' as const }] }),
    })
}

function byName(store: Store): Ask {
  const ruled = createLimiter({ config: fileOf({ levels: 'first-available' }), store })
  cleanUps.push(() => ruled.close())
  return (user, tenant) =>
    ruled.check(`user:${user}`, {
      policy: 'member',
      ...(tenant && { also: [{ subject: `tenant:${tenant}`, policy: 'organisation' }] }),
    })
}

function byRule(store: Store): Ask {
  const ruled = createLimiter({ config: fileOf(), store })
  cleanUps.push(() => ruled.close())
  return (user, tenant) =>
    ruled.request({
      subject: [`user:${user}`, ...(tenant ? [`tenant:${tenant}` as const] : [])],
      path: '/api/a',
    })
}

describe.each(Object.keys(stores))('on %s', name => {
  it.each([
    ['the limiter', byLimiter],
    ['a limiter that is asked by name', byName],
    ['a rule', byRule],
  ])('%s charges both, or none', async (_name, askerOn) => {
    const ask = askerOn(await (stores[name] as () => Promise<Store>)())
    const outcomes = async (...users: number[]) => {
      const all: boolean[] = []
      for (const user of users) all.push((await ask(user, 'acme')).allowed)
      return all
    }
    // The first user is at its own limit, and its organisation has two left.
    expect(await outcomes(1, 1, 1, 1)).toEqual([true, true, true, false])
    expect(await outcomes(2, 2)).toEqual([true, true])
    const denied = await ask(3, 'acme')
    expect(denied).toMatchObject({ allowed: false, policy: 'organisation' })
    // Requests denied by the organisation have taken nothing from its members.
    expect((await ask(3, 'other')).allowed).toBe(true)
    expect((await ask(3, 'other')).allowed).toBe(true)
    expect((await ask(3)).allowed).toBe(true)
    expect((await ask(3)).allowed).toBe(false)
  })
})

describe('a refund', () => {
  it('a refund gives back to all subjects of a decision', async () => {
    const limiter = createLimiter({ policies })
    const ask = () =>
      limiter.check('user:1', {
        policy: 'member',
        also: [{ subject: 'tenant:acme', policy: 'organisation' }],
      })
    const first = await ask()
    expect(await limiter.refund(first)).toBe(1)
    expect((await limiter.peek('user:1', { policy: 'member' })).remaining).toBe(3)
    expect((await limiter.peek('tenant:acme', { policy: 'organisation' })).remaining).toBe(5)
  })
})

describe('mistakes', () => {
  const limiter = createLimiter({ policies })
  it.each<[unknown, string]>([
    ['tenant:acme', 'also: expected a list of { subject, policy }'],
    [
      [{ subject: 'tenant:acme', policy: 'none' }],
      'policy: expected one of member, organisation; got "none"',
    ],
    [[{ subject: 'tenant:acme' }], 'policy: expected the name of a policy'],
    [[{ subject: 'acme', policy: 'organisation' }], 'subject: expected'],
  ])('the further subjects %j are rejected, and nothing is charged', async (also, message) => {
    await expect(limiter.check('user:9', { policy: 'member', also } as never)).rejects.toThrow(message)
    expect((await limiter.peek('user:9', { policy: 'member' })).remaining).toBe(3)
  })

  it('mistakes about further subjects are named in the file too', () => {
    expect(() => fileOf({ identify: ['ip'] })).toThrow(
      'rules[0].also[0].subject: expected a type that identify finds (ip); got Tenant',
    )
    expect(() =>
      fileOf({ rules: [{ match: { path: '/a' }, also: [{ subject: 'tenant', policy: 'none' }] }] }),
    ).toThrow(
      'rules[0].also[0].policy: expected one of member, organisation, login, login-address; got "none"',
    )
  })
})

it('an explanation says who else is charged', () => {
  const ruled = createLimiter({ config: fileOf() })
  const { levels, text } = ruled.explain({ subject: ['user:1', 'tenant:acme'], path: '/api/a' })
  expect(levels[0]?.also).toEqual(['tenant:acme, policy organisation: sliding-window-log 5 in 1h'])
  expect(text).toContain('  and to tenant:acme, policy organisation: sliding-window-log 5 in 1h')
  expect(ruled.explain({ subject: 'user:1', path: '/api/a' }).levels[0]?.also).toEqual([])
})
