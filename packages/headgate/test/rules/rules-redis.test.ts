import { Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter, type RuleLimiter } from '../../src/limiter/limiter.js'
import type { Config } from '../../src/policy/config.js'
import type { RedisClient } from '../../src/store/redis/connection-of.js'
import type { RedisStoreOptions } from '../../src/store/redis/redis-options.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { scripts } from '../../src/store/redis/scripts.gen.js'
import type { MaybePromise } from '../../src/store/store.js'
import { changed } from '../support/changed.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { configOf, perMinute, ruleOf } from '../support/rule-config.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

const cleanUps: (() => Promise<unknown> | unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const API = { policies: { api: perMinute(3) }, default: { policy: 'api' } }
const SEEN_WITHIN_MS = 1_000

async function server() {
  const redis = await startRedis()
  cleanUps.push(() => redis.stop())
  return redis
}

function gateOn(client: RedisClient, config: Partial<Config> = API, options: RedisStoreOptions = {}) {
  const warnings: string[] = []
  const store = redisStore(client, { deadlineMs: 200, ...options })
  const limiter = createLimiter({
    config: configOf(config),
    store,
    onWarning: message => warnings.push(message),
  })
  cleanUps.push(() => limiter.close())
  return { limiter, store, warnings }
}

/** Waits for at most a second, as promised. */
const seen = (what: string, probe: () => boolean | Promise<boolean>) =>
  waitUntil(what, probe, { timeoutMs: SEEN_WITHIN_MS })

const onPort = (port: number) => new Redis({ port, lazyConnect: true })

async function admitted(limiter: RuleLimiter, times: number, subject = 'user:42' as `${string}:${string}`) {
  let count = 0
  for (let time = 0; time < times; time++) if ((await limiter.request({ subject })).allowed) count++
  return count
}

describe('control in Redis', () => {
  it('control in Redis reaches every process within a second, by API and by hand', async () => {
    const { port } = await server()
    const [one, other] = [gateOn(onPort(port)), gateOn(createClient({ url: `redis://127.0.0.1:${port}` }))]
    await Promise.all([one.limiter.ready(), other.limiter.ready()])
    await one.limiter.control.set({ multiplier: 2 })
    expect(one.limiter.control.get().multiplier).toBe(2)
    await seen('the multiplier elsewhere', () => other.limiter.control.get().multiplier === 2)
    expect(await admitted(other.limiter, 8)).toBe(6)
    await sendCommand(port, 'HSET', 'rate-limit:control', 'enabled', 'off')
    await seen(
      'off everywhere',
      () => !one.limiter.control.get().enabled && !other.limiter.control.get().enabled,
    )
    expect(await one.limiter.request({ subject: 'user:42' })).toMatchObject({
      allowed: true,
      reason: 'disabled',
    })
    await sendCommand(port, 'HSET', 'rate-limit:control', 'enabled', 'on', 'multiplier', '1')
    await seen('on again', () => one.limiter.control.get().enabled)
    expect(one.limiter.control.get()).toEqual({ enabled: true, multiplier: 1 })
  })

  it.each([
    ['multiplier', ''],
    ['multiplier', 'abc'],
    ['multiplier', '-1'],
    ['multiplier', '0x0'],
    ['multiplier', '1e309'],
    ['multiplier', 'NaN'],
    ['enabled', 'maybe'],
    ['enabled', ''],
  ])('control ignores %s = %j with a warning, and never takes it for 0 or off', async (field, value) => {
    const { port } = await server()
    await sendCommand(port, 'HSET', 'rate-limit:control', field, value)
    const { limiter, warnings } = gateOn(onPort(port))
    await limiter.ready()
    expect(limiter.control.get()).toEqual({ enabled: true, multiplier: 1 })
    expect(warnings).toEqual([
      expect.stringMatching(new RegExp(`^control ${field}: expected .* which is ignored$`)),
    ])
    expect(await admitted(limiter, 4)).toBe(3)
  })

  it('control holds its last value while Redis is gone, and costs requests nothing', async () => {
    const redis = await server()
    const { limiter } = gateOn(onPort(redis.port), { ...API, onStoreFailure: 'closed' })
    await limiter.ready()
    await limiter.control.set({ enabled: false })
    await redis.kill('SIGKILL')
    await new Promise(resolve => setTimeout(resolve, 600))
    expect(await limiter.request({ subject: 'user:42' })).toMatchObject({ allowed: true, reason: 'disabled' })
  })

  it('a file that names another prefix, tenant or service than the store is rejected', () => {
    const fleet = { prefix: 'rl', tenant: 'lab', service: 'shop' }
    const client = onPort(1)
    cleanUps.push(() => client.disconnect())
    expect(() => gateOn(client, { ...API, prefix: 'rl' })).toThrow(
      /^config prefix: expected that of the store, "ratelimit", as in redisStore\(client, \{ prefix \}\); got "rl"/,
    )
    expect(() => gateOn(client, { ...API, tenant: 'lab' })).toThrow(
      /^config tenant: expected that of the store, ""/,
    )
    expect(() => gateOn(client, { ...API, service: 'shop' })).toThrow(
      /^config service: expected that of the store, ""/,
    )
    expect(() => gateOn(client, { ...API, ...fleet }, fleet)).not.toThrow()
    expect(() => gateOn(client, API, fleet)).not.toThrow()
  })

  it('control that a hand has made a text stops neither the overrides nor a request', async () => {
    const { port } = await server()
    await sendCommand(port, 'SET', 'rate-limit:control', 'off')
    const { limiter, warnings } = gateOn(onPort(port))
    await limiter.ready()
    expect(limiter.control.get()).toEqual({ enabled: true, multiplier: 1 })
    expect(warnings).toEqual([expect.stringMatching(/^control: could not be read, .*WRONGTYPE/)])
    await limiter.overrides.set({
      subject: 'user:42',
      limits: { 'log-1m': 5 },
      ttl: '1h',
      by: 'ada',
      reason: 'sale',
    })
    expect(await limiter.overrides.read()).toHaveLength(1)
    expect(await admitted(limiter, 6)).toBe(5)
    await expect(limiter.control.read()).rejects.toThrow('WRONGTYPE')
  })

  describe('a Redis that lost its memory (R44)', () => {
    const why = { by: 'ada', reason: 'launch day' }

    async function lose() {
      const { port } = await server()
      const [one, other] = [gateOn(onPort(port)), gateOn(onPort(port))]
      await Promise.all([one.limiter.ready(), other.limiter.ready()])
      await one.limiter.control.set({ multiplier: 2 })
      await one.limiter.overrides.set({ subject: 'user:9', limits: { 'log-1m': 20 }, ttl: '1h', ...why })
      await seen(
        'both elsewhere',
        () => other.limiter.control.get().multiplier === 2 && other.limiter.overrides.list().length === 1,
      )
      await sendCommand(port, 'FLUSHALL')
      const knows = ({ limiter }: typeof one) => limiter.control.lost()?.overrides.length === 1
      await seen('the loss', () => knows(one) && knows(other))
      return { port, one, other }
    }

    it('a Redis that lost its memory does not lose switches and overrides: processes say so, and go on', async () => {
      const { port, one, other } = await lose()
      expect(other.limiter.control.lost()).toMatchObject({
        control: { enabled: true, multiplier: 2 },
        overrides: [{ subject: 'user:9' }],
      })
      expect(other.warnings.filter(line => line.startsWith('the store has lost'))).toHaveLength(1)
      expect(await admitted(other.limiter, 8)).toBe(6)
      expect(other.limiter.explain({ subject: 'user:9' }).levels[0]?.override).not.toBeNull()
      await one.limiter.control.restore()
      await seen('the end of the loss', () => other.limiter.control.lost() === null)
      expect(await sendCommand(port, 'HGET', 'rate-limit:control', 'multiplier')).toBe('2')
      expect(other.limiter.overrides.list()).toMatchObject([{ subject: 'user:9', ...why }])
      expect(other.limiter.overrides.list()[0]?.expiresAt).toBeGreaterThan(Date.now() + 3_500_000)
    })

    it('a Redis that lost its memory is given back all of it before anything else is changed', async () => {
      const { one, other } = await lose()
      await one.limiter.overrides.set({ subject: 'user:7', limits: { 'log-1m': 5 }, ttl: '1h', ...why })
      await seen('both overrides', () => other.limiter.overrides.list().length === 2)
      expect(other.limiter.control.get().multiplier).toBe(2)
    })

    it('a Redis that lost its memory may be left without it, and every process then is', async () => {
      const { one, other } = await lose()
      await one.limiter.control.forget()
      await seen('nothing elsewhere', () => other.limiter.overrides.list().length === 0)
      await seen('no loss', () => other.limiter.control.lost() === null)
      expect(other.limiter.control.get()).toEqual({ enabled: true, multiplier: 1 })
    })

    it('what an operator removes is not mistaken for lost', async () => {
      const { port } = await server()
      const [one, other] = [gateOn(onPort(port)), gateOn(onPort(port))]
      await Promise.all([one.limiter.ready(), other.limiter.ready()])
      await one.limiter.overrides.set({ subject: 'user:9', limits: { 'log-1m': 20 }, ttl: '1h', ...why })
      await seen('the override', () => other.limiter.overrides.list().length === 1)
      await one.limiter.overrides.remove({ subject: 'user:9' })
      await seen('its end', () => other.limiter.overrides.list().length === 0)
      expect(other.limiter.control.lost()).toBeNull()
      expect(Number(await sendCommand(port, 'PTTL', 'ratelimit:overrides'))).toBeGreaterThan(0)
    })
  })

  it('control of another prefix is another fleet', async () => {
    const { port } = await server()
    const { limiter } = gateOn(onPort(port), API, { prefix: 'shop' })
    await limiter.ready()
    await limiter.control.set({ enabled: false })
    expect(await sendCommand(port, 'HGET', 'shop:control', 'enabled')).toBe('false')
    expect(await sendCommand(port, 'EXISTS', 'rate-limit:control')).toBe(0)
  })
})

describe('overrides in Redis', () => {
  const why = { by: 'ada', reason: 'launch day' }

  it('overrides in Redis reach every process within a second, survive a restart, and are removed everywhere', async () => {
    const { port } = await server()
    const [one, other] = [gateOn(onPort(port)), gateOn(onPort(port))]
    await Promise.all([one.limiter.ready(), other.limiter.ready()])
    await one.limiter.overrides.set({ subject: 'user:42', limits: { 'log-1m': 10 }, ttl: '1h', ...why })
    await seen('the override elsewhere', () => other.limiter.overrides.list().length === 1)
    expect(await admitted(other.limiter, 12)).toBe(10)
    const restarted = gateOn(onPort(port)).limiter
    await restarted.ready()
    expect(restarted.overrides.list()).toMatchObject([
      { subject: 'user:42', limits: { 'log-1m': 10 }, ...why },
    ])
    expect(await restarted.overrides.remove({ subject: 'user:42' })).toBe(true)
    await seen('its removal elsewhere', () => one.limiter.overrides.list().length === 0)
    // What is left says that it was removed, and not lost.
    expect(await sendCommand(port, 'HKEYS', 'ratelimit:overrides')).toEqual(['#revision'])
  })

  it('overrides in Redis end by themselves, also while Redis is gone, and leave nothing behind', async () => {
    const redis = await server()
    const { limiter } = gateOn(onPort(redis.port))
    await limiter.ready()
    await limiter.overrides.set({ subject: 'user:42', limits: { 'log-1m': 10 }, ttl: '1s', ...why })
    expect(Number(await sendCommand(redis.port, 'PTTL', 'ratelimit:overrides'))).toBeGreaterThan(0)
    await redis.kill('SIGSTOP')
    await waitUntil('the end of the override', () => limiter.overrides.list().length === 0)
    expect(limiter.explain({ subject: 'user:42' }).levels[0]?.override).toBeNull()
    await redis.kill('SIGCONT')
    await waitUntil(
      'an empty Redis',
      async () => (await sendCommand(redis.port, 'EXISTS', 'ratelimit:overrides')) === 0,
    )
  })

  it('overrides of a rule hold for all its callers', async () => {
    const { port } = await server()
    const rules = [ruleOf({ name: 'login', match: { path: '/login' }, charge: { policy: 'api' } })]
    const { limiter } = gateOn(onPort(port), { ...API, rules })
    await limiter.ready()
    await limiter.overrides.set({ rule: 'login', limits: { 'log-1m': 1 }, ttl: '1h', ...why })
    const outcomes = []
    for (let time = 0; time < 2; time++)
      outcomes.push(await limiter.request({ subject: 'user:7', path: '/login' }))
    expect(outcomes.map(({ allowed }) => allowed)).toEqual([true, false])
  })

  it('overrides that a hand has spoilt are ignored with a warning', async () => {
    const { port } = await server()
    const { limiter, warnings } = gateOn(onPort(port))
    await limiter.ready()
    await sendCommand(port, 'HSET', 'ratelimit:overrides', 'subject user:42', '0 99999999999999 {"tier":')
    await seen('a warning', () => warnings.length > 0)
    expect(warnings[0]).toContain('override: one that is stored cannot be understood')
    expect(await admitted(limiter, 4)).toBe(3)
  })

  it.each([
    ['a text', ['SET', 'ratelimit:overrides', 'x']],
    ['an end that is no number', ['HSET', 'ratelimit:overrides', '#revision', '1', '#next-end', 'x']],
    ['an end after all dates', ['HSET', 'ratelimit:overrides', 'subject user:42', `0 ${'9'.repeat(400)} {}`]],
    [
      'an override until after all dates',
      [
        'HSET',
        'ratelimit:overrides',
        'subject user:42',
        `0 ${'9'.repeat(17)} {"subject":"user:42","numbers":{"minute":9},"by":"a","reason":"b"}`,
      ],
    ],
    [
      'a subject that is no text',
      [
        'HSET',
        'ratelimit:overrides',
        'subject 5',
        '0 99999999999999 {"subject":5,"numbers":{"minute":9},"by":"a","reason":"b"}',
      ],
    ],
  ])('overrides that a hand has made %s stop neither the switches nor a request', async (_, command) => {
    const { port } = await server()
    await sendCommand(port, ...command)
    const { limiter } = gateOn(onPort(port))
    await limiter.ready()
    expect(await admitted(limiter, 4)).toBe(3)
    expect(limiter.overrides.list()).toEqual([])
    expect(limiter.explain({ subject: 'user:42' }).levels[0]?.override).toBeNull()
    await sendCommand(port, 'HSET', 'rate-limit:control', 'enabled', 'false')
    await seen('the switch', () => limiter.control.get().enabled === false)
    await limiter.control.set({ enabled: true })
    expect(limiter.control.get().enabled).toBe(true)
  })

  it('overrides last seen hold while they cannot be read, and no longer than they were meant to', async () => {
    const { port } = await server()
    const { limiter, warnings } = gateOn(onPort(port))
    await limiter.ready()
    await limiter.overrides.set({ subject: 'user:42', limits: { 'log-1m': 5 }, ttl: '2s', ...why })
    await sendCommand(port, 'SET', 'ratelimit:overrides', 'x')
    await seen('a warning', () => warnings.some(text => text.startsWith('overrides: could not be read')))
    await limiter.control.set({ multiplier: 2 })
    expect(limiter.explain({ subject: 'user:42' }).levels[0]?.limits).toEqual(['sliding-window-log 10 in 1m'])
    await waitUntil('its end', () => limiter.overrides.list().length === 0)
  })

  it('overrides and switches that are stored are in force at once, whatever becomes of Redis then', async () => {
    const { port } = await server()
    const proxy = await startTcpProxy({ port })
    cleanUps.push(() => proxy.close())
    const store = redisStore(onPort(proxy.port))
    /** Redis is cut off as soon as it has answered a change. */
    const thenCutOff =
      <Args extends unknown[], Result>(change: (...args: Args) => MaybePromise<Result>) =>
      async (...args: Args) => {
        proxy.forward()
        const result = await change(...args)
        proxy.blackhole()
        return result
      }
    const control = {
      ...store.control,
      setControl: thenCutOff(store.control.setControl),
      putOverride: thenCutOff(store.control.putOverride),
      removeOverride: thenCutOff(store.control.removeOverride),
    }
    const limiter = createLimiter({
      config: configOf(API),
      store: changed(store, { control }),
      onWarning: () => {},
    })
    cleanUps.push(() => limiter.close())
    await limiter.ready()
    await limiter.overrides.set({ subject: 'user:42', limits: { 'log-1m': 5 }, ttl: '1h', ...why })
    expect(limiter.overrides.list()).toHaveLength(1)
    expect(await limiter.overrides.remove({ subject: 'user:42' })).toBe(true)
    expect(limiter.overrides.list()).toEqual([])
    await limiter.control.set({ multiplier: 2 })
    expect(limiter.control.get().multiplier).toBe(2)
  })

  it('overrides that take no other one still say when the next of them ends', async () => {
    const { port } = await server()
    const putAt = (atMs: number, target: string, ttlMs: number, most: number) => {
      const args = [`${atMs}000`, '', 'put', target, '{}', `${ttlMs}`, `${most}`]
      return sendCommand(port, 'EVAL', scripts.overrides.text, '1', 'ratelimit:overrides', ...args)
    }
    await putAt(1_000_000, 'subject user:1', 1_000, 2)
    await putAt(1_000_000, 'subject user:2', 50_000, 2)
    expect(await putAt(1_002_000, 'subject user:3', 60_000, 1)).toEqual([1_002_000, 'full', 0])
    expect(await sendCommand(port, 'HGET', 'ratelimit:overrides', '#next-end')).toBe('1050000')
  })

  it('overrides of tenants are kept apart, and hold no secret', async () => {
    const { port } = await server()
    const { limiter } = gateOn(onPort(port), API, { tenant: 'a:b' })
    await limiter.ready()
    await limiter.overrides.set({ subject: 'apikey:s3cret', tier: 'pro', ttl: '1h', ...why })
    const stored = JSON.stringify(await sendCommand(port, 'HGETALL', 'ratelimit:overrides:a%3ab'))
    expect(stored).toContain('launch day')
    expect(stored).not.toContain('s3cret')
  })
})

describe('on a cluster', () => {
  it('control, overrides and levels work across the slots of a cluster', async () => {
    const cluster = await startCluster()
    cleanUps.push(() => cluster.stop())
    const rootNodes = cluster.nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` }))
    const config = {
      policies: { api: perMinute(3), everything: perMinute(5) },
      default: { policy: 'api' },
      global: { policy: 'everything' },
      levels: 'all' as const,
    }
    const { limiter } = gateOn(createCluster({ rootNodes }), config)
    await limiter.ready()
    expect(await admitted(limiter, 4)).toBe(3)
    expect(await admitted(limiter, 4, 'user:7')).toBe(2)
    await limiter.overrides.set({
      subject: 'user:42',
      limits: { 'log-1m': 10 },
      ttl: '1h',
      by: 'ada',
      reason: 'x',
    })
    await limiter.control.set({ multiplier: 2 })
    expect(await admitted(limiter, 12)).toBe(5)
  })
})

describe('on Redis as on memory', () => {
  it('shadow, candidates and first-available are one call on Redis', async () => {
    const { port } = await server()
    const config = {
      policies: {
        route: { ...perMinute(2), candidate: perMinute(1).limits },
        caller: perMinute(2),
        trial: perMinute(1),
      },
      rules: [ruleOf({ name: 'a', match: { path: '/a' }, charge: { policy: 'route' } })],
      default: { policy: 'caller' },
      global: { policy: 'trial', mode: 'shadow' as const },
      levels: 'first-available' as const,
    }
    const { limiter, store } = gateOn(onPort(port), config)
    await store.ready()
    await limiter.ready()
    const before = await commandCount(port)
    const outcomes = []
    for (let time = 0; time < 5; time++)
      outcomes.push(await limiter.request({ subject: 'user:42', path: '/a' }))
    expect(outcomes.map(({ allowed, policy }) => (allowed ? policy : 'denied'))).toEqual([
      'route',
      'route',
      'caller',
      'caller',
      'denied',
    ])
    expect(limiter.counts()).toMatchObject({
      shadow: { trial: { wouldAllow: 1, wouldDeny: 4 } },
      candidates: { route: { wouldAllow: 1, wouldDeny: 4 } },
    })
    expect((await commandCount(port)) - before).toBeLessThan(5 + 10)
  })

  /** Returns the number of scripts run so far; watching control and overrides adds a few a second. */
  async function commandCount(port: number): Promise<number> {
    const info = String(await sendCommand(port, 'INFO', 'commandstats'))
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0)
  }
})
