import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { decisionHeaders } from '../../src/decision/headers.js'
import { createLimiter, type RuleLimiter } from '../../src/limiter/limiter.js'
import type { Config, RuleConfig } from '../../src/policy/config.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import type { Store } from '../../src/store/store.js'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.js'
import { changed } from '../support/changed.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { configOf, perMinute, ruleOf } from '../support/rule-config.ts'
import { waitUntil } from '../support/wait-until.ts'

let redis: RedisProcess
const gates: RuleLimiter[] = []

beforeAll(async () => {
  redis = await startRedis()
})
afterEach(async () => {
  for (const limiter of gates.splice(0)) await limiter.close()
  await sendCommand(redis.port, 'FLUSHALL')
})
afterAll(() => redis.stop())

/** The same on the embedded store and on Redis, on a clock that stands still. */
const STORES = {
  memory: (clock: ManualClock): Store => memoryStore({ clock }),
  redis: (clock: ManualClock): Store =>
    redisStore(new Redis({ port: redis.port, lazyConnect: true }), {
      deadlineMs: 5_000,
      testClockUs: clock.nowUs,
      // It holds a denial for a second of real time, in which this clock may advance by a minute.
      denyCache: false,
    }),
}

describe.each(Object.entries(STORES))('on %s', (_, storeOn) => {
  async function setUp(changes: Partial<Config> = {}, storeOf = storeOn) {
    const clock = manualClock()
    const warnings: string[] = []
    const limiter = createLimiter({
      config: configOf(changes),
      clock,
      store: storeOf(clock),
      onWarning: message => warnings.push(message),
    })
    gates.push(limiter)
    await limiter.ready()
    return { clock, warnings, limiter }
  }

  async function admitted(
    limiter: RuleLimiter,
    times: number,
    facts: Parameters<RuleLimiter['request']>[0] = { subject: 'user:42' },
  ) {
    let count = 0
    for (let time = 0; time < times; time++) if ((await limiter.request(facts)).allowed) count++
    return count
  }

  const API = { policies: { api: perMinute(3) }, default: { policy: 'api' } }

  describe('a limiter', () => {
    it('a limiter decides requests by the rules, and says by which', async () => {
      const { limiter } = await setUp({
        policies: { login: perMinute(2) },
        rules: [
          ruleOf({
            name: 'login',
            match: { methods: ['POST'], path: '/login' },
            charge: { policy: 'login' },
          }),
        ],
      })
      const facts = { subject: 'ip:192.0.2.1', method: 'post', path: '/Login?x' } as const
      expect(await admitted(limiter, 3, facts)).toBe(2)
      const denied = await limiter.request(facts)
      expect(denied).toMatchObject({
        allowed: false,
        policy: 'login',
        rule: 'login',
        tier: 'anonymous',
        limit: 2,
      })
      const elsewhere = await limiter.request({ subject: 'ip:192.0.2.1', path: '/' })
      expect(elsewhere).toMatchObject({ allowed: true, policy: 'tier', rule: 'default', tier: 'anonymous' })
    })

    it('a limiter answers as a limiter too: by the name of a policy or a tier', async () => {
      const { limiter } = await setUp(API)
      expect(limiter.policyNames).toEqual(['api'])
      expect(limiter.tierNames).toContain('pro')
      expect(await limiter.check('user:42', { policy: 'api', cost: 2 })).toMatchObject({
        allowed: true,
        remaining: 1,
      })
      expect(await limiter.peek('user:42', { policy: 'api', cost: 2 })).toMatchObject({ allowed: false })
      expect(await limiter.check('user:42', { tier: 'pro' })).toMatchObject({ tier: 'pro', policy: 'tier' })
      await expect(limiter.check('user:42', { policy: 'apis' })).rejects.toMatchObject({
        code: 'ERR_HEADGATE_UNKNOWN_POLICY',
      })
      await limiter.reset('user:42', { policy: 'api' })
      expect(await limiter.check('user:42', { policy: 'api', cost: 3 })).toMatchObject({ allowed: true })
    })

    it('a limiter takes the failure mode of a question with it', async () => {
      const modes: unknown[] = []
      const decide: Store['decide'] = check => {
        modes.push(check.onStoreFailure)
        check.charged = 0
        check.settle('memory')
      }
      const { limiter } = await setUp(API, clock => changed(storeOn(clock), { decide }))
      await limiter.check('user:42', { policy: 'api', onStoreFailure: 'closed' })
      await limiter.check('user:42', { policy: 'api' })
      expect(modes).toEqual(['closed', null])
      await expect(
        limiter.check('user:42', { policy: 'api', onStoreFailure: 'throw' as 'closed' }),
      ).rejects.toThrow(/^onStoreFailure: expected/)
    })

    it('a limiter gives back what a decision charged', async () => {
      const { limiter } = await setUp(API)
      const decision = await limiter.request({ subject: 'user:42', cost: 3 })
      expect(await admitted(limiter, 1)).toBe(0)
      expect(await limiter.refund(decision)).toBe(3)
      expect(await admitted(limiter, 4)).toBe(3)
    })

    it('a limiter charges costs of the file', async () => {
      const { limiter } = await setUp({ ...API, costs: [{ method: 'POST', path: '/start', cost: 2 }] })
      expect(await limiter.request({ subject: 'user:42', method: 'POST', path: '/start' })).toMatchObject({
        cost: 2,
        remaining: 1,
      })
    })

    it('a limiter keeps the budget all callers share out of reach of any caller’s name', async () => {
      const policies = { api: perMinute(100), shared: perMinute(2) }
      const { limiter } = await setUp({
        policies,
        default: { policy: 'api' },
        levels: 'all',
        global: { policy: 'shared' },
      })
      await limiter.check('global:all', { policy: 'shared', cost: 2 })
      await limiter.check('global:~all', { policy: 'shared', cost: 2 })
      expect(await admitted(limiter, 3)).toBe(2)
    })

    it('a limiter treats a caller whose tier the file does not know as one without, and warns once', async () => {
      const { limiter, warnings } = await setUp()
      expect(await limiter.request({ subject: 'user:42', tier: 'gold' })).toMatchObject({ tier: 'anonymous' })
      await limiter.request({ subject: 'user:42', tier: 'silver' })
      expect(warnings).toEqual([expect.stringContaining('tier: a request named "gold"')])
    })

    it('a limiter rejects mistakes by name and charges nothing for them', async () => {
      const { limiter } = await setUp(API)
      await expect(limiter.request({ subject: [] })).rejects.toMatchObject({
        code: 'ERR_HEADGATE_INVALID_SUBJECT',
      })
      await expect(limiter.request({ subject: 'nobody' as 'a:b' })).rejects.toMatchObject({
        code: 'ERR_HEADGATE_INVALID_SUBJECT',
      })
      await expect(limiter.request({ subject: 'user:42', cost: -1 })).rejects.toMatchObject({
        code: 'ERR_HEADGATE_INVALID_COST',
      })
      for (const facts of [{ method: null }, { path: null }, { path: new URL('http://x/login') }]) {
        const [field] = Object.keys(facts)
        await expect(limiter.request({ subject: 'user:42', ...facts } as never)).rejects.toThrow(
          new RegExp(`^${field}: expected a string, or nothing; got `),
        )
      }
      await expect(limiter.request(undefined as never)).rejects.toThrow(/^facts: expected an object/)
      expect(() => createLimiter({ config: {} as Config })).toThrow(/^config: expected what loadConfig/)
      expect(await admitted(limiter, 4)).toBe(3)
      await limiter.close()
      await expect(limiter.request({ subject: 'user:42' })).rejects.toMatchObject({
        code: 'ERR_HEADGATE_CLOSED',
      })
    })

    it('a limiter skips without headers, and says why', async () => {
      const { limiter } = await setUp({ ...API, skip: { prefixes: ['/assets'], extensions: [] } })
      const decision = await limiter.request({ subject: 'user:42', path: '/assets/a' })
      expect(decision).toMatchObject({ allowed: true, reason: 'skipped', source: 'none' })
      expect(decisionHeaders(decision)).toEqual([])
      expect(await admitted(limiter, 4)).toBe(3)
    })

    describe('held to what every reading of a request leads to', () => {
      const generous = (name: string, path: string) =>
        ruleOf({ name, match: { path }, charge: { policy: 'wide' } })
      const policies = { wide: perMinute(1_000), login: perMinute(3), api: perMinute(5) }
      const login = ruleOf({ name: 'login', match: { path: '/login' }, charge: { policy: 'login' } })

      it.each(['/public/../login', '/public/%2e%2e/login', '/public/..%2flogin', '/health;/../login'])(
        '%s is no way past a strict rule through a generous one',
        async path => {
          const rules = [generous('public', '/public/*'), generous('health', '/health'), login]
          const { limiter } = await setUp({ policies, default: { policy: 'api' }, rules })
          expect(await admitted(limiter, 30, { subject: 'user:42', method: 'POST', path })).toBe(3)
        },
      )

      it.each(['/search/..%2fhealth', '/search/x/../../health', '/HEALTH', '/health/'])(
        '%s is no way past the caller’s limit through a generous rule',
        async path => {
          const rules = [generous('health', '/health')]
          const { limiter } = await setUp({ policies, default: { policy: 'api' }, rules })
          expect(await admitted(limiter, 30, { subject: 'user:42', path })).toBe(5)
          expect(await admitted(limiter, 30, { subject: 'user:7', path: '/health' })).toBe(30)
        },
      )

      it('a request costs the most that any of its readings costs', async () => {
        const costs = [
          { method: null, path: '/public/*', cost: 1 },
          { method: null, path: '/export', cost: 5 },
        ]
        const { limiter } = await setUp({ policies, default: { policy: 'api' }, costs })
        const spelt = { subject: 'user:42', path: '/public/../export' } as const
        expect(await limiter.request(spelt)).toMatchObject({ allowed: true, cost: 5, remaining: 0 })
        expect(await limiter.request({ subject: 'user:7', path: '/public/logo' })).toMatchObject({ cost: 1 })
      })

      it('a request claims every method that it could be taken for', async () => {
        const rules = [
          ruleOf({ name: 'write', match: { methods: ['DELETE'] }, charge: { policy: 'login' } }),
          generous('all', '/*'),
        ]
        const { limiter } = await setUp({ policies, default: { policy: 'api' }, rules })
        const facts = { subject: 'user:42', method: 'POST', path: '/orders' } as const
        expect(await admitted(limiter, 9, { ...facts, claimedMethods: ['GET', 'X', 'delete'] })).toBe(3)
        expect(await admitted(limiter, 9, facts)).toBe(9)
      })

      it('the store’s limit rejects, not this process’s, where only one reading is on comparison', async () => {
        const rules = [{ ...generous('public', '/public/*'), mode: 'compare' as const }, login]
        const clock = manualClock()
        const store = storeOn(clock)
        const processes = [1, 2].map(() =>
          createLimiter({ config: configOf({ policies, rules }), store, clock }),
        )
        gates.push(...processes)
        const facts = { subject: 'user:42', path: '/public/../login' } as const
        let count = 0
        for (const limiter of processes) count += await admitted(limiter, 5, facts)
        expect(count).toBe(3)
      })

      it('a request of several readings takes the strictest failure mode', async () => {
        const modes: unknown[] = []
        const decide: Store['decide'] = check => {
          modes.push(check.onStoreFailure)
          check.charged = 0
          check.settle('memory')
        }
        const rules = [
          { ...generous('public', '/public/*'), onStoreFailure: 'open' as const },
          { ...login, onStoreFailure: 'closed' as const },
        ]
        const { limiter } = await setUp({ policies, rules }, clock => changed(storeOn(clock), { decide }))
        await limiter.request({ subject: 'user:42', path: '/public/logo' })
        await limiter.request({ subject: 'user:42', path: '/public/../login' })
        expect(modes).toEqual(['open', 'closed'])
      })

      it('a request with too many readings is denied', async () => {
        const { limiter } = await setUp({ policies, default: { policy: 'api' } })
        const path = `/${'%2e;\\#//..'.repeat(2_000)}`
        expect(await limiter.request({ subject: 'user:42', path })).toMatchObject({
          allowed: false,
          retryAfterMs: null,
          rule: 'unreadable path',
        })
        expect(await admitted(limiter, 9)).toBe(5)
        await limiter.control.set({ enabled: false })
        expect(await limiter.request({ subject: 'user:42', path })).toMatchObject({ allowed: true })
      })

      it('an explanation goes reading by reading', async () => {
        const rules = [generous('public', '/public/*'), login]
        const { limiter } = await setUp({ policies, default: { policy: 'api' }, rules })
        const { levels, text } = limiter.explain({
          subject: 'user:42',
          method: 'POST',
          path: '/public/../login',
        })
        expect(levels.map(({ rule, part, readAs }) => [rule, part, readAs])).toEqual([
          ['public', 'decides', ['POST /public/../login']],
          ['login', 'decides', ['POST /login']],
          ['default', 'unused', null],
        ])
        expect(text).toContain('where it is read as POST /login')
      })
    })

    it('a limiter advertises in the style of the rule', async () => {
      const rules = [ruleOf({ match: { path: '/a' }, charge: { policy: 'api' }, headers: 'none' })]
      const { limiter } = await setUp({ ...API, rules, headers: 'legacy' })
      const names = async (path: string) =>
        decisionHeaders(await limiter.request({ subject: 'user:42', path })).map(([name]) =>
          name.slice(0, 11),
        )
      expect(new Set(await names('/a'))).toEqual(new Set())
      expect(new Set(await names('/b'))).toEqual(new Set(['X-RateLimit']))
    })

    it('a limiter explains which rule speaks, and asks nothing', async () => {
      const { limiter } = await setUp({
        policies: { login: perMinute(2), api: perMinute(3) },
        default: { policy: 'api' },
        rules: [
          ruleOf({ name: 'login', match: { path: '/login' }, charge: { policy: 'login' }, mode: 'shadow' }),
        ],
      })
      const explanation = limiter.explain({ subject: 'user:42', path: '/login' })
      expect(explanation.levels.map(({ level, rule, part }) => [level, rule, part])).toEqual([
        ['route', 'login', 'shadow'],
        ['caller', 'default', 'decides'],
      ])
      expect(explanation.text).toContain('route: rule login, policy login: evaluated in shadow')
      expect(explanation.text).toContain('sliding-window-log 3 in 1m')
      expect(await admitted(limiter, 4)).toBe(3)
    })
  })

  describe('modes', () => {
    it('shadow lets everything pass and counts what it would have done', async () => {
      const { limiter } = await setUp({ ...API, mode: 'shadow' })
      expect(await admitted(limiter, 5)).toBe(5)
      const decision = await limiter.request({ subject: 'user:42' })
      expect(decision).toMatchObject({ allowed: true, reason: 'shadow' })
      expect(decision.shadow).toMatchObject([{ name: 'api.log-1m', allowed: false }])
      expect(decisionHeaders(decision)).toEqual([])
      expect(limiter.counts().shadow).toEqual({ api: { wouldAllow: 3, wouldDeny: 3 } })
    })

    it('a candidate is reported beside the live limit and never enforced', async () => {
      const policies = { api: { ...perMinute(4), candidate: perMinute(2).limits } }
      const { limiter } = await setUp({ policies, default: { policy: 'api' } })
      expect(await admitted(limiter, 6)).toBe(4)
      expect(limiter.counts().candidates).toEqual({ api: { wouldAllow: 2, wouldDeny: 4 } })
    })

    it('a percentage limits its share of subjects and shadows the others', async () => {
      const { limiter } = await setUp({ ...API, enforcePercent: 50 })
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, async (_, index) => admitted(limiter, 4, { subject: `user:${index}` })),
      )
      expect(new Set(outcomes)).toEqual(new Set([3, 4]))
    })

    it('compare decides in the process and counts where the store differs', async () => {
      const clock = manualClock()
      const store = storeOn(clock)
      const limiter = createLimiter({ config: configOf({ ...API, mode: 'compare' }), store, clock })
      gates.push(limiter)
      expect(await admitted(limiter, 4)).toBe(3)
      expect(limiter.counts().shadowDivergence).toBe(0)
      clock.advanceMs(60_000)
      // Another process has used the store's budget.
      const other = createLimiter({ config: configOf(API), store, clock })
      gates.push(other)
      expect(await admitted(other, 3)).toBe(3)
      expect(await admitted(limiter, 4)).toBe(3)
      await waitUntil('three differences', () => limiter.counts().shadowDivergence === 3)
    })

    it('compare gives back and forgets where it decides', async () => {
      const { limiter } = await setUp({ ...API, mode: 'compare' })
      const decision = await limiter.check('user:42', { policy: 'api', cost: 3 })
      expect(await limiter.refund(decision)).toBe(3)
      expect(await limiter.refund(decision)).toBe(0)
      expect(await admitted(limiter, 4)).toBe(3)
      await limiter.reset('user:42', { policy: 'api' })
      expect(await admitted(limiter, 4)).toBe(3)
    })

    it('compare gives back what the store charged beside it, too', async () => {
      const clock = manualClock()
      const store = storeOn(clock)
      const limiter = createLimiter({ config: configOf({ ...API, mode: 'compare' }), store, clock })
      const other = createLimiter({ config: configOf(API), store, clock })
      gates.push(limiter, other)
      const decision = await limiter.check('user:42', { policy: 'api', cost: 3 })
      expect(await limiter.refund(decision, 2)).toBe(2)
      expect((await other.peek('user:42', { policy: 'api' })).remaining).toBe(2)
      expect(await limiter.refund(decision)).toBe(1)
      expect((await other.peek('user:42', { policy: 'api' })).remaining).toBe(3)
    })

    it('compare is not disturbed by a store that fails', async () => {
      const broken = (clock: ManualClock) =>
        changed(storeOn(clock), { decide: () => Promise.reject(new Error('no store')) })
      const { limiter, warnings } = await setUp({ ...API, mode: 'compare' }, broken)
      expect(await admitted(limiter, 4)).toBe(3)
      await waitUntil('a warning', () => warnings.length > 0)
      expect(warnings).toEqual(['compare: the store could not be asked: no store'])
    })
  })

  describe('control', () => {
    it('control that is off lets everything pass, says so, and forgets nothing', async () => {
      const { limiter } = await setUp(API)
      await admitted(limiter, 3)
      await limiter.control.set({ enabled: false })
      const decision = await limiter.request({ subject: 'user:42' })
      expect(decision).toMatchObject({ allowed: true, reason: 'disabled', limit: Number.POSITIVE_INFINITY })
      expect(decisionHeaders(decision)).toEqual([])
      await limiter.control.set({ enabled: true })
      expect(await admitted(limiter, 1)).toBe(0)
    })

    it('a multiplier gives headroom and takes it back; 0 pauses', async () => {
      const { limiter } = await setUp(API)
      await admitted(limiter, 3)
      await limiter.control.set({ multiplier: 2 })
      expect(await admitted(limiter, 4)).toBe(3)
      await limiter.control.set({ multiplier: 1 })
      expect(await admitted(limiter, 1)).toBe(0)
      await limiter.control.set({ multiplier: 0 })
      expect(await limiter.request({ subject: 'user:42' })).toMatchObject({ allowed: true, reason: 'paused' })
      expect(limiter.control.get()).toEqual({ enabled: true, multiplier: 0 })
    })

    it('a multiplier of 0 lets nobody in who is banned', async () => {
      const policies = { api: perMinute(3), none: perMinute(0) }
      const subjects = new Map([['user:13', { policy: 'none' }]])
      const { limiter } = await setUp({ policies, default: { policy: 'api' }, subjects })
      await limiter.control.set({ multiplier: 0 })
      expect(await limiter.request({ subject: 'user:13' })).toMatchObject({ allowed: false, policy: 'none' })
      expect(await admitted(limiter, 9)).toBe(9)
      await limiter.overrides.set({
        subject: 'user:42',
        numbers: { minute: 0 },
        ttl: '1h',
        by: 'ada',
        reason: 'abuse',
      })
      expect(await admitted(limiter, 1)).toBe(0)
      // The switch is the last resort: it lets everything pass.
      await limiter.control.set({ enabled: false })
      expect(await admitted(limiter, 1, { subject: 'user:13' })).toBe(1)
    })

    it.each([
      { multiplier: -1 },
      { multiplier: Number.NaN },
      { multiplier: 1e9 },
      { multiplier: '2' },
      { enabled: 'no' },
      { enable: false },
      null,
      5,
    ])('control rejects %j and changes nothing', async change => {
      const { limiter } = await setUp(API)
      await expect(limiter.control.set(change as object)).rejects.toMatchObject({
        code: 'ERR_HEADGATE_INVALID_OPTION',
      })
      expect(limiter.control.get()).toEqual({ enabled: true, multiplier: 1 })
    })
  })

  describe('overrides', () => {
    const why = { by: 'ada', reason: 'launch day' }

    it('overrides lift a subject for a time, keep what it used, and end by themselves', async () => {
      const { limiter, clock } = await setUp({ default: { tier: 'anonymous' } })
      expect(await admitted(limiter, 30)).toBe(20)
      await limiter.overrides.set({
        subject: 'user:42',
        numbers: { minute: 25, burst: 1 },
        ttl: '30s',
        ...why,
      })
      expect(await admitted(limiter, 30)).toBe(5)
      expect(limiter.overrides.list()).toMatchObject([
        { subject: 'user:42', numbers: { minute: 25 }, ...why },
      ])
      clock.advanceMs(30_000)
      expect(limiter.overrides.list()).toEqual([])
      expect(limiter.explain({ subject: 'user:42' }).levels[0]?.override).toBeNull()
    })

    it('overrides are removed at once, and replaced by a newer one for the same target', async () => {
      const { limiter } = await setUp(API)
      const limits = (units: number) =>
        ({ subject: 'user:42', limits: { 'log-1m': units }, ttl: '1h', ...why }) as const
      await limiter.overrides.set(limits(5))
      await limiter.overrides.set(limits(10))
      expect(limiter.overrides.list()).toHaveLength(1)
      expect(await admitted(limiter, 12)).toBe(10)
      expect(await limiter.overrides.remove({ subject: 'user:42' })).toBe(true)
      expect(await limiter.overrides.remove({ subject: 'user:42' })).toBe(false)
      expect(await admitted(limiter, 1)).toBe(0)
    })

    it.each([undefined, {}, { rule: 5 }, { rule: 5, subject: 'user:42' }])(
      'overrides are not removed by the target %j',
      async target => {
        const { limiter } = await setUp(API)
        await expect(limiter.overrides.remove(target as never)).rejects.toThrow(
          /^override (target|rule): expected/,
        )
      },
    )

    it('overrides of a rule name only limits that the rule charges', async () => {
      const policies = {
        api: perMinute(3),
        login: { limits: [tokenBucket({ capacity: 5, refillPerSecond: 1 })] },
      }
      const rules = [
        ruleOf({ name: 'login', match: { path: '/login' }, charge: { policy: 'login' } }),
        ruleOf({ name: 'dear', match: { path: '/dear' }, cost: 2 }),
      ]
      const { limiter } = await setUp({ policies, rules })
      const set = (rule: string, id: string) =>
        limiter.overrides.set({ rule, limits: { [id]: 9 }, ttl: '1h', ...why })
      await expect(set('login', 'log-1m')).rejects.toThrow(
        /^override limits: expected one of bucket; got "log-1m"/,
      )
      await set('login', 'bucket')
      await set('dear', 'counter-1h')
      expect(limiter.overrides.list()).toHaveLength(2)
    })

    it('overrides of a subject and a rule are removed by both', async () => {
      const rules = [ruleOf({ name: 'login', match: { path: '/login' }, charge: { policy: 'api' } })]
      const { limiter } = await setUp({ ...API, rules })
      const both = { subject: 'user:42', rule: 'login' }
      await limiter.overrides.set({ ...both, limits: { 'log-1m': 9 }, ttl: '1h', ...why })
      expect(limiter.overrides.list()).toMatchObject([both])
      expect(await admitted(limiter, 12, { subject: 'user:42', path: '/login' })).toBe(9)
      expect(await limiter.overrides.remove({ subject: 'user:42' })).toBe(false)
      expect(await limiter.overrides.remove(both)).toBe(true)
    })

    it('overrides say what they change and what they leave', async () => {
      const policies = { api: perMinute(3), search: perMinute(1) }
      const rules = [ruleOf({ name: 'search', match: { path: '/search' }, charge: { policy: 'search' } })]
      const { limiter } = await setUp({ policies, tiers: {}, default: { policy: 'api' }, rules })
      const meant = { subject: 'user:42', limits: { 'log-1m': 9 }, ttl: '1h', ...why } as const
      const change = { rule: 'default', policy: 'api', tier: null, after: ['sliding-window-log 9 in 1m'] }
      expect(limiter.overrides.preview(meant)).toEqual({
        changes: [{ ...change, now: ['sliding-window-log 3 in 1m'] }],
        unchanged: ['search'],
      })
      expect(limiter.overrides.list()).toEqual([])
      await limiter.overrides.set(meant)
      expect(limiter.overrides.preview({ ...meant, limits: { 'log-1m': 20 } }).changes).toEqual([
        { ...change, now: change.after, after: ['sliding-window-log 20 in 1m'] },
      ])
      // The same again lasts longer, and so is not without effect.
      await limiter.overrides.set(meant)
    })

    it('overrides that could not take effect are refused with what could', async () => {
      const policies = {
        api: perMinute(3),
        all: perMinute(5),
        search: { limits: [tokenBucket({ capacity: 5, refillPerSecond: 1 })] },
      }
      const search = ruleOf({ name: 'search', match: { path: '/search' }, charge: { policy: 'search' } })
      const every = ruleOf({ name: 'every', match: { path: '/*' }, charge: { policy: 'all' } })
      const common = ruleOf({
        name: 'common',
        match: { path: '/c' },
        charge: { policy: 'all' },
        per: 'everyone',
      })
      const users = ruleOf({
        name: 'users',
        match: { path: '/u', subjects: ['user'] },
        charge: { policy: 'all' },
      })
      const refused = async (rules: RuleConfig[], override: object, message: RegExp) => {
        const { limiter } = await setUp({ policies, tiers: {}, default: { policy: 'api' }, rules })
        const asked = { subject: 'ip:192.0.2.1', ttl: '1h', ...why, ...override } as never
        await expect(limiter.overrides.set(asked)).rejects.toThrow(message)
        expect(limiter.overrides.list()).toEqual([])
      }
      const bucket = { limits: { bucket: 9 } }
      await refused([search], bucket, /^override limits: .*log-1m.* a rule that has it \(search\)/)
      await refused([search, every], { numbers: { minute: 9 } }, /^override rule: .*search, every/)
      await refused([common], { rule: 'common', numbers: { minute: 9 } }, /^override subject: .*everybody/)
      await refused([users], { rule: 'users', numbers: { minute: 9 } }, /^override subject: .*users.*: user/)
      await refused([], { numbers: { minute: 3 } }, /^override replacement: expected other numbers/)
      await refused([], { numbers: { minute: 3, burst: 2 } }, /^override numbers.burst/)
    })

    it('overrides never hold a secret in the open', async () => {
      const { limiter } = await setUp(API)
      await limiter.overrides.set({ subject: 'apikey:s3cret', tier: 'pro', ttl: '1h', ...why })
      expect(JSON.stringify(limiter.overrides.list())).not.toContain('s3cret')
      expect(await limiter.request({ subject: 'apikey:s3cret' })).toMatchObject({ tier: 'pro' })
      expect(await limiter.overrides.remove({ subject: 'apikey:s3cret' })).toBe(true)
    })

    it.each([
      [{ subject: 'user:42', tier: 'gold', ttl: '1h', ...why }, /^override tier: expected one of anonymous/],
      [{ rule: 'nope', tier: 'pro', ttl: '1h', ...why }, /^override rule: expected one of none; got "nope"/],
      [
        { subject: 'user:42', limits: { 'log-2m': 1 }, ttl: '1h', ...why },
        /^override limits: expected one of log-1m/,
      ],
      [
        { subject: 'user:42', limits: { 'log-1m': -1 }, ttl: '1h', ...why },
        /^override limits.log-1m: expected a whole/,
      ],
      [{ subject: 'user:42', tier: 'pro', ...why }, /^override ttl: expected a duration/],
      [
        { subject: 'user:42', tier: 'pro', ttl: '32d', ...why },
        /^override ttl: expected a duration from '1ms' to '31d'.*; got "32d"$/,
      ],
      [
        { subject: 'user:42', tier: 'pro', ttl: '1h', by: 'ada', reason: '' },
        /^override reason: expected a text/,
      ],
      [{ subject: 'user:42', tier: 'pro', ttl: '1h', by: '', reason: 'x' }, /^override by: expected a text/],
      [
        { subject: 'user:42', ttl: '1h', ...why },
        /^override replacement: expected one of tier, numbers, limits, ban; got "none"/,
      ],
      [
        { tier: 'pro', ttl: '1h', ...why },
        /^override target: expected a subject, a rule, a policy, or a subject and one of these; got "none"/,
      ],
      [
        { subject: 'user:42', tier: 'pro', ttl: '1h', tll: 1, ...why },
        /^override tll: expected one of subject/,
      ],
    ])('overrides reject %j by name', async (override, message) => {
      const { limiter } = await setUp(API)
      await expect(limiter.overrides.set(override as never)).rejects.toThrow(message)
      expect(limiter.overrides.list()).toEqual([])
    })
  })

  describe('reloading', () => {
    it('a reload keeps what subjects have used, up and down', async () => {
      const { limiter } = await setUp(API)
      await admitted(limiter, 3)
      await limiter.reload(configOf({ ...API, policies: { api: perMinute(5) } }))
      expect(await admitted(limiter, 4)).toBe(2)
      await limiter.reload(configOf({ ...API, policies: { api: perMinute(2) } }))
      expect(await limiter.request({ subject: 'user:42' })).toMatchObject({
        allowed: false,
        limit: 2,
        remaining: 0,
      })
      expect(limiter.counts().reloads).toBe(2)
    })

    it('a reload rejects an invalid configuration, and keeps the last one', async () => {
      const { limiter } = await setUp(API)
      await expect(limiter.reload(undefined as never)).rejects.toThrow(/^config: expected what loadConfig/)
      const broken = configOf({ ...API, policies: { 'no name': perMinute(1) } })
      await expect(limiter.reload(broken)).rejects.toThrow(/^policies: expected names/)
      await limiter.control.set({ multiplier: 2 })
      expect(await admitted(limiter, 8)).toBe(6)
      expect(limiter.counts().reloads).toBe(0)
    })

    it.each([
      ['prefix', {}, { prefix: 'shop' }, '"ratelimit"'],
      ['prefix', { prefix: 'ratelimit' }, { prefix: 'shop' }, '"ratelimit"'],
      ['tenant', {}, { tenant: 'blue' }, '""'],
    ])('a reload rejects another %s, and says what to do', async (field, before, after, started) => {
      const { limiter } = await setUp({ ...API, ...before })
      await expect(
        limiter.reload(configOf({ ...API, ...after, policies: { api: perMinute(9) } })),
      ).rejects.toThrow(
        `config ${field}: expected ${started} as when the process started, or a restart; got `,
      )
      expect(await admitted(limiter, 4)).toBe(3)
      await limiter.reload(configOf({ ...API, ...before }))
      await limiter.reload(configOf({ ...API, prefix: 'ratelimit' }))
      expect(limiter.counts().reloads).toBe(2)
    })

    it('a reload keeps control and overrides', async () => {
      const { limiter } = await setUp(API)
      await limiter.control.set({ multiplier: 2 })
      await limiter.reload(configOf(API))
      expect(await admitted(limiter, 8)).toBe(6)
    })
  })
})
