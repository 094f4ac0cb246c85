import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defineConfig, parseConfig } from '../src/config.js'
import {
  ban,
  createLimiter,
  decisionHeaders,
  decisionProblem,
  type HeadgateEvent,
  type LimiterOptions,
  memoryStore,
  slidingWindowCounter,
  slidingWindowLog,
} from '../src/index.js'
import { redisStore } from '../src/redis.js'
import type { Store } from '../src/store/store.js'
import { type ManualClock, manualClock } from '../src/testing/manual-clock.js'
import { type RedisProcess, startRedis } from './support/redis-process.ts'
import { waitUntil } from './support/wait-until.ts'

const GROWING = ban({ after: 3, within: '1m', for: ['1m', '10m', '1h'] })
const LOGIN = { limits: slidingWindowLog({ limit: 2, window: '10s' }), ban: GROWING } as const

interface Bench {
  readonly clock: ManualClock
  readonly store: Store
  /** Waits until strikes that are on their way have arrived. */
  arrived(): Promise<void>
}

let server: RedisProcess
let client: Redis

beforeAll(async () => {
  server = await startRedis()
  client = new Redis({ port: server.port })
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  async memory() {
    const clock = manualClock()
    return { clock, store: memoryStore({ clock }), arrived: async () => {} }
  },
  async redis() {
    const clock = manualClock()
    await client.flushall()
    const store = redisStore(client, { testClockUs: () => clock.nowUs(), deadlineMs: 10_000 })
    await store.ready()
    // One connection keeps the order: what is asked after a strike was sent is answered after it was charged.
    return { clock, store, arrived: async () => void (await client.ping()) }
  },
}

describe.each(Object.keys(benches))('bans that grow, in %s', name => {
  async function open(options: Partial<LimiterOptions<{ login: typeof LOGIN }, never>> = {}) {
    const bench = await (benches[name] as () => Promise<Bench>)()
    const limiter = createLimiter({ policies: { login: LOGIN }, ...options, store: bench.store })
    const check = async (subject = 'user:42') => {
      const decision = await limiter.check(subject, { policy: 'login' })
      await bench.arrived()
      return decision
    }
    /** Uses the limit up, and is denied until it is banned. */
    const misbehave = async (subject?: string) => {
      for (let time = 0; time < 5; time++) await check(subject)
      const decision = await check(subject)
      expect(decision.reason).toBe('banned')
      return decision
    }
    return { ...bench, limiter, check, misbehave }
  }

  it('bans who is denied so many times, and says until when', async () => {
    const { check, limiter } = await open()
    const reasons: string[] = []
    for (let time = 0; time < 6; time++) reasons.push((await check()).reason)
    expect(reasons).toEqual([
      'within-limit',
      'within-limit',
      'limit-exceeded',
      'limit-exceeded',
      'limit-exceeded',
      'banned',
    ])
    const decision = await check()
    expect(decision).toMatchObject({ allowed: false, retryAfterMs: 60_000, remaining: 0, policy: 'login' })
    expect(decisionHeaders(decision, { style: 'both' })).toEqual([['Retry-After', '60']])
    const { status, body } = decisionProblem(decision)
    expect(status).toBe(429)
    expect(body).toMatchObject({
      type: expect.stringMatching(/#banned$/),
      title: 'Temporarily banned',
      detail: 'This caller is banned for now; try again in 60 s.',
      'violated-policies': ['login.log-10s', 'login.ban'],
    })
    await limiter.close()
  })

  it('each ban is longer than the one before, up to the last of the list', async () => {
    const { misbehave, clock, limiter } = await open()
    for (const minutes of [1, 10, 60, 60]) {
      expect((await misbehave()).retryAfterMs).toBe(minutes * 60_000)
      clock.advanceMs(minutes * 60_000)
    }
    await limiter.close()
  })

  it('requests during a ban neither extend it nor count', async () => {
    const { misbehave, check, clock, limiter } = await open()
    await misbehave()
    clock.advanceMs(59_999)
    for (let time = 0; time < 20; time++) expect((await check()).retryAfterMs).toBe(1)
    clock.advanceMs(1)
    expect((await check()).allowed).toBe(true)
    await limiter.close()
  })

  it('after a quiet time longer than the longest ban all is forgotten', async () => {
    const { misbehave, clock, limiter } = await open()
    await misbehave()
    clock.advanceMs(60_000 + 3_600_000 + 60_000)
    expect((await misbehave()).retryAfterMs).toBe(60_000)
    await limiter.close()
  })

  it('a reset ends a ban and forgets the strikes and the level', async () => {
    const { misbehave, check, clock, limiter } = await open()
    await misbehave()
    clock.advanceMs(60_000)
    await misbehave()
    await limiter.reset('user:42')
    expect((await check()).allowed).toBe(true)
    await limiter.reset('user:42')
    expect((await misbehave()).retryAfterMs).toBe(60_000)
    await limiter.close()
  })

  it('a ban of one caller is not one of another, and an admitted request is told nothing of it', async () => {
    const { misbehave, check, limiter } = await open()
    await misbehave()
    const decision = await check('user:43')
    expect(decision).toMatchObject({ allowed: true, limit: 2, remaining: 1, reason: 'within-limit' })
    expect(decisionHeaders(decision, { style: 'ietf' })).toEqual([
      ['RateLimit-Policy', '"login.log-10s";q=2;w=10'],
      ['RateLimit', '"login.log-10s";r=1;t=10'],
    ])
    await limiter.close()
  })

  it('in shadow nobody is banned, and who would be is counted', async () => {
    const { check, limiter } = await open({ policies: { login: { ...LOGIN, mode: 'shadow' } as never } })
    for (let time = 0; time < 6; time++) expect((await check()).allowed).toBe(true)
    const [, banned] = (await check()).shadow
    expect(banned).toMatchObject({ name: 'login.ban', allowed: false, retryAfterMs: 60_000 })
    expect(limiter.counts().bans).toEqual({ login: 1 })
    await limiter.close()
  })

  it('in compare this process bans by its own denials, and the store by those it would have made', async () => {
    const events: HeadgateEvent[] = []
    const { misbehave, check, limiter } = await open({
      policies: { login: { ...LOGIN, mode: 'compare' } as never },
      onEvent: event => void events.push(event),
    })
    await misbehave()
    const isBannedInStore = async () => (await limiter.inspect('user:42')).text.includes('banned for another')
    await waitUntil('the store has banned', isBannedInStore)
    expect(limiter.counts()).toMatchObject({ bans: { login: 1 }, shadowDivergence: 0 })
    expect(events.filter(({ type }) => type === 'ban')).toEqual([{ type: 'ban', policy: 'login', level: 1 }])
    await limiter.unban('user:42')
    expect(await isBannedInStore()).toBe(false)
    expect((await check()).reason).toBe('limit-exceeded')
    await limiter.close()
  })

  it('success ends it all in compare, too: here and in the store', async () => {
    const { check, limiter } = await open({
      policies: { login: { ...LOGIN, mode: 'compare' } as never },
    })
    await check()
    const succeeded = await check()
    for (let time = 0; time < 3; time++) expect((await check()).allowed).toBe(false)
    const isBannedInStore = async () => (await limiter.inspect('user:42')).text.includes('banned for another')
    await waitUntil('the store has banned', isBannedInStore)
    await limiter.forgive(succeeded)
    expect(await isBannedInStore()).toBe(false)
    expect((await check()).allowed).toBe(true)
    await limiter.close()
  })

  it('a ban is an event, a count and part of what is known of a caller', async () => {
    const events: HeadgateEvent[] = []
    const { misbehave, check, clock, limiter } = await open({ onEvent: event => void events.push(event) })
    await check()
    await check()
    await check()
    expect((await limiter.inspect('user:42')).text).toContain('not banned, 1 denials so far')
    await misbehave()
    expect((await limiter.inspect('user:42')).text).toMatch(
      /login\.ban .*ban after 3 denials within 1m, for 1m, then 10m, then 1h, banned for another 60 s, step 1 of 3/,
    )
    const banOf = async () =>
      (await limiter.inspect('user:42')).limits.find(({ name }) => name === 'login.ban')?.ban
    const stepsMs = [60_000, 600_000, 3_600_000]
    expect(await banOf()).toEqual({ level: 1, stepsMs, strikes: 0, bannedForMs: 60_000 })
    expect(limiter.counts().bans).toEqual({ login: 1 })
    expect(events.filter(({ type }) => type === 'ban')).toEqual([{ type: 'ban', policy: 'login', level: 1 }])
    clock.advanceMs(60_000)
    for (let time = 0; time < 4; time++) await check()
    expect(await banOf()).toEqual({ level: 1, stepsMs, strikes: 2, bannedForMs: 0 })
    expect((await limiter.inspect('user:42')).text).toContain(
      'not banned, 2 denials so far, the next ban is step 2 of 3',
    )
    await check()
    expect(await banOf()).toEqual({ level: 2, stepsMs, strikes: 0, bannedForMs: 600_000 })
    expect((await limiter.inspect('user:43')).limits.map(({ ban }) => ban)).toEqual([])
    await limiter.close()
  })

  it('waiting for a turn is no strike', async () => {
    const { check, limiter } = await open()
    await check()
    await check()
    for (let time = 0; time < 5; time++) {
      const decision = await limiter.acquire('user:42', { policy: 'login', timeoutMs: 1 })
      expect(decision.reason).toBe('limit-exceeded')
    }
    await limiter.close()
  })

  it('a limit without a ban beside it leads to none, and a denial of it writes nothing', async () => {
    const both = {
      login: LOGIN,
      api: slidingWindowCounter({ limit: 1, window: '1h' }),
    }
    const { limiter, store, arrived } = await open({ policies: both as never })
    for (let time = 0; time < 20; time++) {
      await limiter.check('user:42', { policy: 'api' as never })
      await arrived()
    }
    const decision = await limiter.check('user:42', { policy: 'api' as never })
    expect(decision.reason).toBe('limit-exceeded')
    if ('size' in store) expect(store.size).toBe(1)
    else expect(await client.keys('*:api*')).toHaveLength(1)
    await limiter.close()
  })

  it('admitted requests leave nothing of a ban behind', async () => {
    const { check, limiter, store } = await open()
    await check()
    await check()
    if ('size' in store) expect(store.size).toBe(1)
    else expect(await client.keys('*.ban')).toEqual([])
    await limiter.close()
  })

  it('a paused fleet still keeps who is banned out, and lets everybody else pass', async () => {
    const { misbehave, check, limiter } = await open()
    await misbehave()
    await limiter.control.set({ multiplier: 0 })
    expect((await check()).reason).toBe('banned')
    for (let time = 0; time < 9; time++) expect((await check('user:43')).allowed).toBe(true)
    await limiter.close()
  })
})

describe('a ban of a policy', () => {
  it('denials that this process remembered are strikes, and a flood is a few calls to Redis', async () => {
    await client.flushall()
    const own = new Redis({ port: server.port })
    const store = redisStore(own, { deadlineMs: 10_000 })
    await store.ready()
    const policy = {
      limits: slidingWindowLog({ limit: 1, window: '1h' }),
      ban: ban({ after: 50, within: '1h', for: '2h' }),
    }
    const limiter = createLimiter({ policies: { login: policy }, store })
    await limiter.check('user:42', { policy: 'login' })
    let denied = 0
    let isBanned = false
    while (!isBanned) {
      denied++
      isBanned = (await limiter.check('user:42', { policy: 'login' })).reason === 'banned'
    }
    expect(denied).toBeGreaterThan(50)
    const calls = async () => Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1])
    const before = await calls()
    for (let time = 0; time < 1_000; time++) await limiter.check('user:42', { policy: 'login' })
    expect((await calls()) - before).toBeLessThan(50)
    await limiter.close()
    own.disconnect()
  })

  it('outlasts Redis: who was banned stays out while it is away, and processes ban by themselves', async () => {
    const own = await startRedis()
    const client = new Redis({ port: own.port, maxRetriesPerRequest: 0, retryStrategy: () => 20 })
    client.on('error', () => {})
    const logger = { info() {}, warn() {}, error() {} }
    const limiter = createLimiter({
      policies: { login: LOGIN },
      store: redisStore(client, { logger, deadlineMs: 200 }),
    })
    await limiter.ready()
    const check = (subject: string) => limiter.check(subject, { policy: 'login' })
    await waitUntil('banned', async () => (await check('user:1')).reason === 'banned')
    await own.stop()
    await waitUntil('on its own', async () => (await check('user:1')).source === 'local')
    const decision = await check('user:1')
    expect(decision).toMatchObject({ source: 'local', reason: 'banned', allowed: false })
    expect(decision.retryAfterMs).toBeGreaterThan(30_000)
    await waitUntil('banned here', async () => (await check('user:2')).reason === 'banned')
    await limiter.close()
    client.disconnect()
  })

  it('is written in a policy file as in code', async () => {
    const text = `
policies:
  login:
    limits: { algorithm: sliding-window-log, limit: 2, window: 10s }
    ban: { after: 3, within: 1m, for: [1m, 10m, 1h] }
default: { policy: login }
`
    const clock = manualClock()
    for (const config of [
      await parseConfig(text, 'headgate.yaml'),
      defineConfig({ policies: { login: LOGIN }, default: { policy: 'login' } }),
      defineConfig({
        policies: { login: { ...LOGIN, ban: { after: 3, within: '1m', for: ['1m', '10m', '1h'] } } },
        default: { policy: 'login' },
      }),
    ]) {
      const limiter = createLimiter({ config, store: memoryStore({ clock }) })
      const ask = () => limiter.request({ subject: 'user:42', method: 'POST', path: '/login' })
      for (let time = 0; time < 5; time++) await ask()
      expect(await ask()).toMatchObject({ reason: 'banned', retryAfterMs: 60_000 })
      expect(limiter.explain({ subject: 'user:42', method: 'POST', path: '/login' }).text).toContain(
        'ban after 3 denials within 1m, for 1m, then 10m, then 1h',
      )
      await limiter.close()
    }
  })

  it('never falls on everybody where all share a budget', async () => {
    const config = defineConfig({
      policies: { login: LOGIN },
      rules: [{ match: { path: '/login' }, policy: 'login', per: 'everyone' }],
    })
    const limiter = createLimiter({ config })
    for (let time = 0; time < 9; time++) {
      const decision = await limiter.request({ subject: 'user:42', method: 'POST', path: '/login' })
      expect(decision.reason).not.toBe('banned')
    }
    await limiter.close()
  })

  it.each([
    [{ after: 0, within: '1m', for: '1m' }, /after: expected a whole number from 1 to 10000; got 0/],
    [{ after: 1.5, within: '1m', for: '1m' }, /after: expected a whole number/],
    [{ after: 3, within: 'soon', for: '1m' }, /within: expected a duration/],
    [{ after: 3, within: '1m', for: [] }, /for: expected 1 to 20 durations/],
    [{ after: 3, within: '1m', for: ['1h', '1m'] }, /^for\[1\]: expected .* 1h before it; got "1m"/],
    [{ after: 3, within: '1m', for: ['1h', 'soon'] }, /^for\[1\]: expected a duration/],
    [{ after: 3, within: '1m' }, /for: expected a duration/],
    [{ after: 3, within: '1m', for: '1m', level: 2 }, /ban.level: expected one of after, within, for/],
    [null, /ban: expected an object of options/],
  ])('%j is refused by name', (options, message) => {
    expect(() => ban(options as never)).toThrow(message)
    expect(() =>
      defineConfig({
        policies: { login: { ...LOGIN, ban: options as never } },
        default: { policy: 'login' },
      }),
    ).toThrow(/policies\.login\.ban/)
  })

  it.each([
    [{ limits: [GROWING] }, /a limit made by slidingWindowLog/],
    [
      { ...LOGIN, ban: { after: 3, within: '1m', for: '1m' } },
      /policies\.login\.ban: expected what ban\(\) returns/,
    ],
    [{ ...LOGIN, lease: 'auto' }, /policies\.login\.lease: expected none beside a ban/],
  ])('a policy like %j is refused', (policy, message) => {
    expect(() => createLimiter({ policies: { login: policy as never } })).toThrow(message)
  })
})
