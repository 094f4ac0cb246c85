import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defineConfig } from '../src/config.js'
import {
  ban,
  concurrency,
  createLimiter,
  decisionHeaders,
  decisionProblem,
  memoryStore,
  slidingWindowLog,
} from '../src/index.js'
import { redisStore } from '../src/redis.js'
import { manualClock } from '../src/testing/manual-clock.js'
import { type RedisProcess, startRedis } from './support/redis-process.ts'
import { waitUntil } from './support/wait-until.ts'

const POLICIES = {
  api: slidingWindowLog({ limit: 2, window: '1m' }),
  login: {
    limits: slidingWindowLog({ limit: 1, window: '1m' }),
    ban: ban({ after: 1, within: '1m', for: '1h' }),
  },
  export: [slidingWindowLog({ limit: 2, window: '1m' }), concurrency({ limit: 1 })],
}

function open() {
  const clock = manualClock()
  return { clock, limiter: createLimiter({ policies: POLICIES, store: memoryStore({ clock }) }) }
}

async function admittedOf(ask: () => Promise<{ readonly allowed: boolean }>, times = 10): Promise<number> {
  let admitted = 0
  for (let time = 0; time < times; time++) if ((await ask()).allowed) admitted++
  return admitted
}

describe('a ban from code', () => {
  it('denies everything of one caller, says until when, and ends by itself', async () => {
    const { limiter, clock } = open()
    await limiter.ban('user:42', '1h')
    for (const policy of ['api', 'login', 'export'] as const) {
      const decision = await limiter.check('user:42', { policy })
      expect(decision).toMatchObject({
        allowed: false,
        reason: 'banned',
        retryAfterMs: 3_600_000,
        remaining: 0,
      })
    }
    const decision = await limiter.check('user:42', { policy: 'api' })
    expect(decision.subject).toBe('user:42')
    expect(decisionHeaders(decision)).toEqual([['Retry-After', '3600']])
    expect(decisionProblem(decision)).toMatchObject({
      status: 429,
      body: { title: 'Temporarily banned', policy: 'api', retryAfterMs: 3_600_000 },
    })
    expect((await limiter.peek('user:42', { policy: 'api' })).reason).toBe('banned')
    expect((await limiter.check('user:43', { policy: 'api' })).allowed).toBe(true)
    clock.advanceMs(3_599_999)
    expect((await limiter.check('user:42', { policy: 'api' })).retryAfterMs).toBe(1)
    clock.advanceMs(1)
    expect((await limiter.check('user:42', { policy: 'api' })).allowed).toBe(true)
    await limiter.close()
  })

  it('is lifted, with the bans that policies have made', async () => {
    const { limiter } = open()
    await limiter.ban('user:42', '1h', { by: 'ada', reason: 'scraping' })
    expect(limiter.overrides.list()).toMatchObject([
      { subject: 'user:42', ban: true, by: 'ada', reason: 'scraping' },
    ])
    await limiter.unban('user:42')
    expect(limiter.overrides.list()).toEqual([])
    for (let time = 0; time < 3; time++) await limiter.check('user:42', { policy: 'login' })
    expect((await limiter.check('user:42', { policy: 'login' })).reason).toBe('banned')
    await limiter.unban('user:42')
    expect((await limiter.check('user:42', { policy: 'login' })).reason).toBe('limit-exceeded')
    await limiter.close()
  })

  it('stands beside an override of numbers, and denies whoever is charged with the caller', async () => {
    const { limiter } = open()
    await limiter.overrides.set({ subject: 'user:42', limits: { 'log-1m': 5 }, ttl: '1h' })
    await limiter.ban('user:42', '1h')
    expect((await limiter.check('user:42', { policy: 'api' })).reason).toBe('banned')
    const also = [{ subject: 'user:42', policy: 'api' as const }]
    expect((await limiter.check('ip:192.0.2.1', { policy: 'api', also })).reason).toBe('banned')
    await limiter.unban('user:42')
    expect(await admittedOf(() => limiter.check('user:42', { policy: 'api' }))).toBe(5)
    await limiter.close()
  })

  it('holds for every rule of a policy file, and not while limits are switched off', async () => {
    const config = defineConfig({
      policies: { api: POLICIES.api },
      default: { policy: 'api' },
      rules: [{ match: { path: '/search' }, policy: 'api', scope: 'search' }],
    })
    const limiter = createLimiter({ config })
    await limiter.ban('user:42', '1h')
    for (const path of ['/', '/search']) {
      expect((await limiter.request({ subject: 'user:42', method: 'GET', path })).reason).toBe('banned')
      const both = { subject: ['ip:192.0.2.1', 'user:42'], method: 'GET', path } as const
      expect((await limiter.request(both)).reason).toBe('banned')
    }
    await limiter.control.set({ enabled: false })
    expect((await limiter.request({ subject: 'user:42', method: 'GET', path: '/' })).allowed).toBe(true)
    await limiter.close()
  })

  it.each([
    [['user:42', 'soon'], /override ttl: expected a duration/],
    [['user:42', '32d'], /override ttl: expected a duration from '1ms' to '31d'/],
    [['', '1h'], /subject/],
    [['user:42', '1h', { who: 'ada' }], /who: expected one of by, reason/],
  ])('ban(...%j) is refused by name, and bans nobody', async (args, message) => {
    const { limiter } = open()
    await expect(limiter.ban(...(args as Parameters<typeof limiter.ban>))).rejects.toThrow(message)
    expect(limiter.overrides.list()).toEqual([])
    await limiter.close()
  })
})

describe('an override by the name of a policy', () => {
  it('replaces the number of everybody, or of one caller, which wins', async () => {
    const { limiter } = open()
    const ask = (subject: string) => () => limiter.check(subject, { policy: 'api' })
    await limiter.overrides.set({ policy: 'api', limit: 3, ttl: '1h' })
    await limiter.overrides.set({ policy: 'api', subject: 'user:42', limit: 5, ttl: '1h' })
    expect(await admittedOf(ask('user:42'))).toBe(5)
    expect(await admittedOf(ask('user:43'))).toBe(3)
    expect(limiter.overrides.list().map(({ by, reason }) => ({ by, reason }))).toEqual([
      { by: 'code', reason: 'no reason given' },
      { by: 'code', reason: 'no reason given' },
    ])
    expect(await limiter.overrides.remove({ policy: 'api' })).toBe(true)
    expect(await admittedOf(ask('user:44'))).toBe(2)
    await limiter.close()
  })

  it('holds wherever the rules charge that policy', async () => {
    const config = defineConfig({
      policies: { api: POLICIES.api, search: slidingWindowLog({ limit: 1, window: '1m' }) },
      default: { policy: 'api' },
      rules: [{ match: { path: '/search' }, policy: 'search' }],
    })
    const limiter = createLimiter({ config })
    const ask = (path: string) => () => limiter.request({ subject: 'user:42', method: 'GET', path })
    await ask('/search')()
    await ask('/')()
    await limiter.overrides.set({ policy: 'search', limit: 4, ttl: '1h' })
    expect(await admittedOf(ask('/search'))).toBe(3)
    expect(await admittedOf(ask('/'))).toBe(1)
    await limiter.close()
  })

  it('reaches other processes through Redis', async () => {
    const clients = [new Redis({ port: server.port }), new Redis({ port: server.port })] as const
    const limiters = clients.map(client =>
      createLimiter({ policies: POLICIES, store: redisStore(client, { deadlineMs: 5_000 }) }),
    )
    const [here, there] = limiters as [(typeof limiters)[0], (typeof limiters)[0]]
    await Promise.all(limiters.map(limiter => limiter.ready()))
    await here.overrides.set({ policy: 'api', limit: 7, ttl: '1h' })
    await here.ban('user:1', '1h')
    await waitUntil(
      'the override is seen',
      async () => (await there.peek('user:42', { policy: 'api' })).limit === 7,
    )
    await waitUntil(
      'the ban is seen',
      async () => (await there.check('user:1', { policy: 'api' })).reason === 'banned',
    )
    await Promise.all(limiters.map(limiter => limiter.close()))
    for (const client of clients) client.disconnect()
  })

  it.each([
    [
      { policy: 'apj', limit: 5, ttl: '1h' },
      /override policy: expected one of api, login, export; got "apj"/,
    ],
    [{ policy: 'export', limit: 5, ttl: '1h' }, /expected numbers for some of log-1m, concurrency/],
    [{ policy: 'api', limit: -1, ttl: '1h' }, /override limit: expected a whole number/],
    [{ policy: 'api', limit: 2, ttl: '1h' }, /expected other numbers than those in force/],
    [
      { subject: 'user:42', limit: 5, ttl: '1h' },
      /override policy: expected the policy whose limit is replaced/,
    ],
    [{ policy: 'api', rule: 'x', limit: 5, ttl: '1h' }, /override policy: expected none beside a rule/],
    [{ policy: 'api', ban: true, ttl: '1h' }, /override ban: expected a subject and nothing else/],
    [{ policy: 'api', limits: { 'log-1h': 5 }, ttl: '1h' }, /override limits: expected one of log-1m/],
  ])('%j is refused by name, and changes nothing', async (override, message) => {
    const { limiter } = open()
    await expect(limiter.overrides.set(override as never)).rejects.toThrow(message)
    expect(limiter.overrides.list()).toEqual([])
    await limiter.close()
  })
})

let server: RedisProcess
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
