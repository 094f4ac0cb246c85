/** An IPv6 caller is its /64, and the /56 and /48 around it have budgets of their own. */
import { Redis } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { defineConfig } from '../../src/config.js'
import { decisionHeaders } from '../../src/decision/headers.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import type { RedisClient } from '../../src/store/redis/connection-of.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import type { Store } from '../../src/store/store.js'
import type { Ipv6Networks } from '../../src/subject/subject.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { readInfo } from '../support/redis-info.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

const cleanUps: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const LIMIT = 5
const api = slidingWindowLog({ limit: LIMIT, window: '1h' })
const hex = (number: number) => number.toString(16)
/** Returns an address of the /64 `subnet` of 2001:db8:1::/48. */
const address = (subnet: number, host = 1) => `ip:2001:db8:1:${hex(subnet)}::${hex(host)}` as const

interface Asked {
  readonly check: (subject: `ip:${string}`) => Promise<{ readonly allowed: boolean }>
}

async function admitted({ check }: Asked, subjects: Iterable<`ip:${string}`>): Promise<number> {
  const decisions = await Promise.all([...subjects].map(check))
  return decisions.filter(({ allowed }) => allowed).length
}

/** Yields as many requests from each of the /64s. */
function* from(subnets: number, each: number, step = 1): Generator<`ip:${string}`> {
  for (let subnet = 0; subnet < subnets; subnet++) {
    for (let host = 0; host < each; host++) yield address(subnet * step, host)
  }
}

function limiterOn(store: Store, ipv6Networks?: Ipv6Networks): Asked & ReturnType<typeof makeLimiter> {
  const limiter = makeLimiter(store, ipv6Networks)
  return { ...limiter, check: subject => limiter.check(subject, { policy: 'api' }) }
}

function makeLimiter(store: Store, ipv6Networks?: Ipv6Networks) {
  const subject = ipv6Networks === undefined ? {} : { ipv6Networks }
  const limiter = createLimiter({ store, policies: { api }, subject })
  cleanUps.push(() => limiter.close())
  return limiter
}

function gateOn(store: Store, changes: Partial<Parameters<typeof defineConfig>[0]> = {}) {
  const config = defineConfig({ policies: { api }, default: { policy: 'api' }, ...changes } as object)
  const ruled = createLimiter({ config, store })
  cleanUps.push(() => ruled.close())
  return { limiter: ruled, check: (subject: `ip:${string}`) => ruled.request({ subject }) }
}

let server: RedisProcess
let cluster: RedisCluster
let opened = 0
beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster({ replicasPerPrimary: 0 })])
})
afterAll(() => Promise.all([server.stop(), cluster.stop()]))

const stores: Record<string, () => Promise<Store>> = {
  memory: async () => memoryStore(),
  redis: () => onServer(),
  cluster() {
    const rootNodes = cluster.primaries.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` }))
    return readyStore(createCluster({ rootNodes }))
  },
}

function onServer(): Promise<Store> {
  const client = new Redis({ port: server.port, lazyConnect: true })
  cleanUps.push(() => client.disconnect())
  return readyStore(client)
}

/** Creates stores with separate keys. */
async function readyStore(client: RedisClient): Promise<Store> {
  const store = redisStore(client, { deadlineMs: 2_000, prefix: `rl${opened++}` })
  await store.ready()
  return store
}

describe.each(Object.keys(stores))('on %s', name => {
  const open = stores[name] as () => Promise<Store>

  describe.each([
    ['the limiter', (store: Store) => limiterOn(store)],
    ['the limiter', (store: Store) => gateOn(store)],
  ])('%s', (_name, askerOn) => {
    it('a /64 has one budget, a /56 four and a /48 sixteen, and another /48 its own', async () => {
      const asker = askerOn(await open())
      expect(await admitted(asker, from(1, 3 * LIMIT))).toBe(LIMIT)
      expect(await admitted(asker, from(256, 1))).toBe(3 * LIMIT)
      expect(await admitted(asker, from(256, LIMIT, 256))).toBe(12 * LIMIT)
      expect(await admitted(asker, ['ip:2001:db8:2::1', 'ip:192.0.2.1'])).toBe(2)
    })

    it('the networks around a caller are charged all or none', async () => {
      const asker = askerOn(await open())
      expect(await admitted(asker, from(4, LIMIT))).toBe(4 * LIMIT)
      // Denied by the /56, these must take nothing from their own /64 or from the /48.
      expect(await admitted(asker, from(256, 4))).toBe(0)
      expect(await admitted(asker, from(256, LIMIT, 256))).toBe(12 * LIMIT)
    })
  })
})

describe('one caller', () => {
  it('one caller is 65,536 addresses of a /64, however they are spelt', async () => {
    const asker = limiterOn(memoryStore())
    const random = Array.from({ length: 65_536 }, (_, index) => {
      const rest = Array.from({ length: 4 }, () => hex(Math.floor(Math.random() * 65_536)))
      const head = ['2001:db8:1:2', '2001:0DB8:0001:0002', '2001:dB8:1:0002'][index % 3]
      return `ip:${head}:${rest.join(':')}${index % 5 === 0 ? '%eth0' : ''}` as const
    })
    expect(await admitted(asker, random)).toBe(LIMIT)
    expect(await admitted(asker, ['ip:2001:db8:1:2::/64'])).toBe(0)
  })

  it('one caller is an address of IPv4 in all its spellings, with nothing around it', async () => {
    const asker = limiterOn(memoryStore())
    const spellings = ['1.2.3.4', '::ffff:1.2.3.4', '::FFFF:102:304', '0:0:0:0:0:ffff:0102:0304'] as const
    const subjects = Array.from({ length: 20 }, (_, index) => `ip:${spellings[index % 4]}` as const)
    expect(await admitted(asker, subjects)).toBe(LIMIT)
    const others = Array.from({ length: 200 }, (_, index) => `ip:1.2.3.${index + 5}` as const)
    expect(await admitted(asker, others)).toBe(200)
  })

  it('one caller of IPv6 costs one script call on Redis', async () => {
    const asker = limiterOn(await onServer())
    await asker.check(address(1))
    const calls = async () => {
      const stats = await readInfo(server.port, 'INFO', 'commandstats')
      return Number(/calls=(\d+)/.exec(stats.cmdstat_evalsha ?? '')?.[1] ?? 0)
    }
    const before = await calls()
    for (let request = 0; request < 3; request++) await asker.check(address(1))
    expect((await calls()) - before).toBe(3)
  })

  it('a caller that floods while denied by its /56 is denied in the process', async () => {
    const asker = limiterOn(await onServer())
    expect(await admitted(asker, from(4, LIMIT))).toBe(4 * LIMIT)
    const denied = await asker.check(address(9))
    expect(denied.allowed).toBe(false)
    const commands = async () =>
      Number((await readInfo(server.port, 'INFO', 'stats')).total_commands_processed)
    const before = await commands()
    expect(
      await admitted(
        asker,
        Array.from({ length: 200 }, () => address(9)),
      ),
    ).toBe(0)
    expect((await commands()) - before).toBeLessThan(20)
  })

  it('a caller gets back what it gives back, and its neighbours at once', async () => {
    const limiter = makeLimiter(await onServer())
    const decisions = await Promise.all([...from(4, LIMIT)].map(one => limiter.check(one, { policy: 'api' })))
    expect((await limiter.check(address(9), { policy: 'api' })).allowed).toBe(false)
    expect(await limiter.refund(decisions[0] as (typeof decisions)[0])).toBe(1)
    expect((await limiter.check(address(9), { policy: 'api' })).allowed).toBe(true)
    expect((await limiter.check(address(9), { policy: 'api' })).allowed).toBe(false)
  })
})

describe('headers', () => {
  const headersOf = async (asker: Asked, subject: `ip:${string}`) =>
    Object.fromEntries(decisionHeaders((await asker.check(subject)) as never, { style: 'both' }))

  it('headers speak of the caller’s own limit until a wider one binds', async () => {
    const asker = limiterOn(memoryStore())
    const first = await headersOf(asker, address(1))
    expect(first['X-RateLimit-Limit']).toBe('5')
    expect(first['RateLimit-Policy']).toBe('"api.log-1h";q=5;w=3600')
    expect(first.RateLimit).toBe('"api.log-1h";r=4;t=3600')
    await admitted(asker, from(4, LIMIT))
    const denied = await headersOf(asker, address(9))
    expect(denied['X-RateLimit-Limit']).toBe('20')
    expect(denied['RateLimit-Policy']).toBe('"api.log-1h";q=5;w=3600, "api.log-1h/56";q=20;w=3600')
    expect(denied['Retry-After']).toMatch(/^\d+$/)
  })
})

describe('sizes', () => {
  it('the sizes of wider networks are settings of the limiter', async () => {
    expect(await admitted(limiterOn(memoryStore(), 'off'), from(256, LIMIT))).toBe(256 * LIMIT)
    const one = limiterOn(memoryStore(), { '/60': 2 })
    expect(await admitted(one, from(16, LIMIT))).toBe(2 * LIMIT)
    expect(await admitted(one, from(16, LIMIT, 16))).toBe(15 * LIMIT)
  })

  it('the sizes of wider networks are settings of the policy file', async () => {
    expect(await admitted(gateOn(memoryStore(), { ipv6Networks: 'off' }), from(256, 1))).toBe(256)
    const { check } = gateOn(memoryStore(), { ipv6Networks: { '/56': 2 } })
    expect(await admitted({ check }, from(256, LIMIT))).toBe(2 * LIMIT)
    expect(await admitted({ check }, from(256, LIMIT, 256))).toBe(255 * LIMIT)
  })

  it('the sizes of wider networks scale a bucket’s rate with its capacity', async () => {
    const clock = manualClock()
    const limiter = createLimiter({
      store: memoryStore({ clock }),
      policies: { login: tokenBucket({ capacity: 2, refillPerSecond: 1 }) },
    })
    const asker: Asked = { check: subject => limiter.check(subject, { policy: 'login' }) }
    expect(await admitted(asker, from(8, 2))).toBe(8)
    clock.advanceMs(1_000)
    expect(await admitted(asker, from(8, 2))).toBe(4)
  })

  it.each<[unknown, string]>([
    [true, "ipv6Networks: expected off, or a map of networks such as { '/56': 4, '/48': 16 }; got true"],
    [{ '/64': 1 }, 'ipv6Networks: expected sizes from /48 to /63; got "/64"'],
    [{ '/32': 1 }, 'ipv6Networks: expected sizes from /48 to /63; got "/32"'],
    [{ '/56': 0 }, 'ipv6Networks./56: expected a whole number from 1 to 65536; got 0'],
  ])('the sizes %j are rejected by name', (ipv6Networks, message) => {
    expect(() =>
      createLimiter({ policies: { api }, subject: { ipv6Networks: ipv6Networks as 'off' } }),
    ).toThrow(message)
  })
})

describe('a limiter', () => {
  it('a limiter explains the networks around a caller', () => {
    const { limiter: ruled } = gateOn(memoryStore())
    const { levels, text } = ruled.explain({ subject: 'ip:2001:db8:1:2::9' })
    expect(levels[0]).toMatchObject({
      subject: 'ip:2001:db8:1:2::/64',
      limits: ['sliding-window-log 5 in 1h'],
      wider: [
        'all of ip:2001:db8:1:0::/56: sliding-window-log 20 in 1h',
        'all of ip:2001:db8:1::/48: sliding-window-log 80 in 1h',
      ],
    })
    expect(text).toContain('  all of ip:2001:db8:1::/48: sliding-window-log 80 in 1h')
    expect(ruled.explain({ subject: 'ip:192.0.2.1' }).levels[0]?.wider).toEqual([])
  })

  it('a limiter leaves out callers whose limits were set for them alone, so that they take nothing from neighbours', async () => {
    const { limiter: ruled, check } = gateOn(memoryStore(), {
      policies: { api, partner: slidingWindowLog({ limit: 100, window: '1h' }) },
      subjects: { 'ip:2001:db8:1:1::/64': { policy: 'partner' } },
    } as object)
    await ruled.overrides.set({
      subject: address(2),
      limits: { 'log-1h': 50 },
      ttl: '1h',
      by: 'ops',
      reason: 'a test',
    })
    expect(
      await admitted(
        { check },
        Array.from({ length: 101 }, () => address(1)),
      ),
    ).toBe(100)
    expect(
      await admitted(
        { check },
        Array.from({ length: 51 }, () => address(2)),
      ),
    ).toBe(50)
    expect(await admitted({ check }, from(256, LIMIT))).toBe(4 * LIMIT)
  })
})
