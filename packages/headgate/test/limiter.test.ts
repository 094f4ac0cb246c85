import { describe, expect, expectTypeOf, it } from 'vitest'
import { defineConfig } from '../src/config.js'
import {
  createLimiter,
  type Decision,
  defaultTiers,
  type HeadgateError,
  isHeadgateError,
  type Limiter,
  memoryStore,
  slidingWindowCounter,
  slidingWindowLog,
  tier,
  tokenBucket,
} from '../src/index.js'
import { CASES_START_US, type ManualClock, manualClock } from '../src/testing/manual-clock.js'
import { changed } from './support/changed.ts'

const SECOND_US = 1_000_000
const MINUTE_US = 60 * SECOND_US

function setUp() {
  const clock = manualClock()
  const store = memoryStore({ clock })
  const limiter = createLimiter({
    clock,
    store,
    policies: {
      api: [slidingWindowLog({ limit: 3, window: '1m' }), slidingWindowCounter({ limit: 5, window: '1h' })],
      login: tokenBucket({ capacity: 5, refillPerSecond: 0.1 }),
      banned: slidingWindowLog({ limit: 0, window: '1m' }),
    },
    tiers: { ...defaultTiers, vip: tier({}) },
  })
  return { clock, store, limiter }
}

async function rejection(promise: Promise<unknown>): Promise<HeadgateError> {
  const outcome = await promise.then(
    () => null,
    error => error,
  )
  if (!isHeadgateError(outcome)) throw new Error(`expected a rejection with a code; got ${outcome}`)
  return outcome
}

describe('check', () => {
  it('check charges every limit of the policy and says what is left of the binding one', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:42', { policy: 'api' })
    expect(decision).toMatchObject({
      allowed: true,
      limit: 3,
      remaining: 2,
      retryAfterMs: 0,
      resetAfterMs: 60_000,
      resetAt: CASES_START_US / 1_000 + 60_000,
      cost: 1,
      policy: 'api',
      tier: null,
      source: 'memory',
      reason: 'within-limit',
    })
    expect(decision.verdicts.map(verdict => [verdict.name, verdict.remaining])).toEqual([
      ['api.log-1m', 2],
      ['api.counter-1h', 4],
    ])
  })

  it('check charges all limits or none', async () => {
    const { limiter, clock } = setUp()
    for (let count = 0; count < 3; count++) await limiter.check('user:42', { policy: 'api' })
    const denied = await limiter.check('user:42', { policy: 'api' })
    expect(denied).toMatchObject({
      allowed: false,
      reason: 'limit-exceeded',
      retryAfterMs: 60_000,
      remaining: 0,
    })
    // The hour was not charged for the denied request: exactly two are left of it.
    clock.advanceUs(MINUTE_US)
    expect((await limiter.check('user:42', { policy: 'api', cost: 2 })).allowed).toBe(true)
    expect((await limiter.check('user:42', { policy: 'api' })).allowed).toBe(false)
  })

  it('check admits after exactly retryAfterMs and not a millisecond before', async () => {
    const { limiter, clock } = setUp()
    await limiter.check('user:42', { policy: 'login', cost: 5 })
    clock.advanceUs(123_456)
    const { retryAfterMs } = await limiter.check('user:42', { policy: 'login', cost: 3 })
    expect(retryAfterMs).toBe(29_877)
    clock.advanceUs(29_876_000)
    expect((await limiter.check('user:42', { policy: 'login', cost: 3 })).allowed).toBe(false)
    clock.advanceUs(1_000)
    expect((await limiter.check('user:42', { policy: 'login', cost: 3 })).allowed).toBe(true)
  })

  it('check keeps subjects, scopes and policies apart, and a subject is the same however it is written', async () => {
    const { limiter } = setUp()
    await limiter.check('user:42', { policy: 'api', cost: 3 })
    expect((await limiter.check({ type: 'user', id: '42' }, { policy: 'api' })).allowed).toBe(false)
    expect((await limiter.check('user:42', { policy: 'api', scope: 'global' })).allowed).toBe(false)
    expect((await limiter.check('user:43', { policy: 'api' })).allowed).toBe(true)
    expect((await limiter.check('user:42', { policy: 'api', scope: 'search' })).allowed).toBe(true)
    expect((await limiter.check('user:42', { policy: 'login' })).allowed).toBe(true)
  })

  it('check never throws a denial: a ban and a cost above the capacity are decisions without a date', async () => {
    const { limiter } = setUp()
    const banned = await limiter.check('user:42', { policy: 'banned' })
    expect(banned).toMatchObject({ allowed: false, retryAfterMs: null, reason: 'exceeds-capacity', limit: 0 })
    const tooMuch = await limiter.check('user:42', { policy: 'api', cost: 4 })
    expect(tooMuch).toMatchObject({
      allowed: false,
      retryAfterMs: null,
      reason: 'exceeds-capacity',
      remaining: 3,
    })
    expect(JSON.parse(JSON.stringify(tooMuch))).toMatchObject({ allowed: false, retryAfterMs: null })
  })

  it('check with a cost of 0 asks whether anything is owed and charges nothing', async () => {
    const { limiter, store } = setUp()
    expect(await limiter.check('user:42', { policy: 'api', cost: 0 })).toMatchObject({
      allowed: true,
      remaining: 3,
    })
    expect(store.size).toBe(0)
  })

  it('check lets an unlimited tier pass and says so', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:42', { tier: 'vip', cost: 1_000_000 })
    expect(decision).toMatchObject({
      allowed: true,
      reason: 'unlimited',
      tier: 'vip',
      remaining: Number.POSITIVE_INFINITY,
    })
    expect(decision.binding).toBeNull()
  })

  it('check never shows a secret', async () => {
    const { limiter } = setUp()
    const canary = 'sk_live_canary_1234567890'
    const decision = await limiter.check(`apikey:${canary}`, { policy: 'api' })
    expect(JSON.stringify(decision)).not.toContain(canary)
  })
})

describe('peek', () => {
  it('peek says what check would and changes nothing', async () => {
    const { limiter, store } = setUp()
    for (let count = 0; count < 5; count++) {
      expect(await limiter.peek('user:42', { policy: 'api', cost: 3 })).toMatchObject({
        allowed: true,
        remaining: 3,
      })
    }
    expect(store.size).toBe(0)
    await limiter.check('user:42', { policy: 'api', cost: 3 })
    const denied = await limiter.peek('user:42', { policy: 'api' })
    expect(denied).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
    expect((await limiter.check('user:42', { policy: 'api' })).retryAfterMs).toBe(60_000)
  })
})

describe('refund', () => {
  it('refund and settle reject a decision of another limiter, even on the same store', async () => {
    const store = memoryStore()
    const policies = { api: slidingWindowLog({ limit: 5, window: '1m' }) }
    const [one, other] = [createLimiter({ policies, store }), createLimiter({ policies, store })]
    const decision = await one.check('user:1', { policy: 'api', cost: 2 })
    expect(await one.refund(decision)).toBe(2)
    const foreign = { code: 'ERR_HEADGATE_INVALID_OPTION', field: 'decision' }
    await expect(other.refund(decision)).rejects.toMatchObject(foreign)
    await expect(other.settle(decision, 1)).rejects.toMatchObject(foreign)
    expect((await one.peek('user:1', { policy: 'api' })).remaining).toBe(5)
  })

  it('what others paid comes back once, whoever gives it back first', async () => {
    const policies = {
      login: slidingWindowLog({ limit: 5, window: '1m' }),
      address: tokenBucket({ capacity: 10, refillPerSecond: 1 }),
    }
    const store = memoryStore({ clock: manualClock() })
    const [limiter, other] = [createLimiter({ policies, store }), createLimiter({ policies, store })]
    const also = [{ subject: 'ip:192.0.2.1', policy: 'address' }] as const
    for (let time = 0; time < 5; time++) await limiter.check('user:1', { policy: 'login', also })
    const left = async () => (await limiter.peek('ip:192.0.2.1', { policy: 'address' })).remaining
    await limiter.reset('user:1')
    const decision = await limiter.check('user:1', { policy: 'login', also })
    expect(await left()).toBe(4)
    await limiter.forgive(decision)
    expect(await left()).toBe(5)
    await limiter.forgive(decision)
    expect(await limiter.refund(decision)).toBe(0)
    await expect(other.forgive(decision)).rejects.toMatchObject({ field: 'decision' })
    expect(await left()).toBe(5)
  })

  it('refund gives back what was charged, once', async () => {
    const { limiter } = setUp()
    const first = await limiter.check('user:42', { policy: 'api', cost: 2 })
    await limiter.check('user:42', { policy: 'api' })
    expect(await limiter.refund(first)).toBe(2)
    expect(await limiter.refund(first)).toBe(0)
    expect((await limiter.peek('user:42', { policy: 'api' })).remaining).toBe(2)
  })

  it('refund given at the same time twice still gives back once', async () => {
    const { limiter } = setUp()
    await limiter.check('user:42', { policy: 'api', cost: 1 })
    const decision = await limiter.check('user:42', { policy: 'api', cost: 2 })
    const given = await Promise.all([
      limiter.refund(decision),
      limiter.refund(decision),
      limiter.refund(decision, 1),
    ])
    expect(given.reduce((sum, units) => sum + units, 0)).toBe(2)
    expect((await limiter.peek('user:42', { policy: 'api' })).remaining).toBe(2)
  })

  it('refund gives back parts, together never more than the cost', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:42', { policy: 'login', cost: 4 })
    expect(await limiter.refund(decision, 1)).toBe(1)
    expect(await limiter.refund(decision, 2)).toBe(2)
    expect(await limiter.refund(decision, 4)).toBe(1)
    expect(await limiter.refund(decision, 1)).toBe(0)
    expect((await limiter.peek('user:42', { policy: 'login' })).remaining).toBe(5)
  })

  it('refund gives nothing back once the charge has left the window', async () => {
    const { limiter, clock } = setUp()
    const decision = await limiter.check('user:42', { policy: 'api' })
    clock.advanceUs(3 * 60 * MINUTE_US)
    expect(await limiter.refund(decision)).toBe(0)
  })

  it.each([0, -1, 1.5, 3, Number.NaN, '1', null])(
    'refund rejects %s units of a decision that cost 2',
    async units => {
      const { limiter } = setUp()
      const decision = await limiter.check('user:42', { policy: 'api', cost: 2 })
      const error = await rejection(limiter.refund(decision, units as number))
      expect(error.code).toBe('ERR_HEADGATE_INVALID_COST')
      expect(error.message).toMatch(/^units: expected a whole number from 1 to the decision's cost 2; got /)
    },
  )

  it('refund rejects decisions that charged nothing', async () => {
    const { limiter } = setUp()
    const denied = await limiter.check('user:42', { policy: 'banned' })
    const peeked = await limiter.peek('user:42', { policy: 'api' })
    const free = await limiter.check('user:42', { policy: 'api', cost: 0 })
    for (const decision of [denied, peeked, free]) {
      expect((await rejection(limiter.refund(decision))).code).toBe('ERR_HEADGATE_NOT_CHARGED')
    }
  })
})

describe('reset', () => {
  it('reset forgets what the subject used, in this policy and scope only', async () => {
    const { limiter } = setUp()
    const asks = [{ policy: 'api' }, { policy: 'api', scope: 'search' }, { policy: 'login' }] as const
    for (const ask of asks) await limiter.check('user:42', ask)
    await limiter.reset('user:42', { policy: 'api' })
    const left = await Promise.all(asks.map(async ask => (await limiter.peek('user:42', ask)).remaining))
    expect(left).toEqual([3, 2, 4])
  })
})

describe('close', () => {
  it('close closes the store once, and afterwards the limiter rejects to answer', async () => {
    let closes = 0
    const inner = memoryStore()
    const store = changed(inner, {
      close() {
        closes++
      },
    })
    const limiter = createLimiter({ store, policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
    const decision = await limiter.check('user:1', { policy: 'api' })
    await limiter.close()
    await limiter.close()
    expect(closes).toBe(1)
    expect((await rejection(limiter.refund(decision))).code).toBe('ERR_HEADGATE_CLOSED')
    expect((await rejection(limiter.reset('user:1', { policy: 'api' }))).code).toBe('ERR_HEADGATE_CLOSED')
    expect((await rejection(limiter.check('user:1', { policy: 'api' }))).code).toBe('ERR_HEADGATE_CLOSED')
    expect((await rejection(limiter.peek('user:1', { policy: 'api' }))).code).toBe('ERR_HEADGATE_CLOSED')
  })
})

describe('the anonymous tier: 10 a minute, burst 2×', () => {
  /** Asks every second; returns the times of admission in seconds. */
  async function hammer(limiter: Limiter<string, string>, clock: ManualClock, seconds: number) {
    const admitted: number[] = []
    for (let second = 0; second < seconds; second++) {
      for (;;) {
        const decision = await limiter.check('ip:192.0.2.1', { tier: 'anonymous' })
        if (!decision.allowed) break
        admitted.push(second)
      }
      clock.advanceUs(SECOND_US)
    }
    return admitted
  }
  const between = (times: readonly number[], from: number, to: number) =>
    times.filter(time => time >= from && time < to).length

  it('a tier of 10 a minute, burst 2×, gives 20 in the first minute, never more than 20 in any, and 10 in the long run', async () => {
    const clock = manualClock()
    const store = memoryStore({ clock })
    const limiter = createLimiter({ store, tiers: { anonymous: tier({ minute: 10, burst: 2 }) } })
    const admitted = await hammer(limiter, clock, 20 * 60)
    expect(between(admitted, 0, 60)).toBe(20)
    for (let second = 0; second < 20 * 60; second++) {
      expect(between(admitted, second, second + 60)).toBeLessThanOrEqual(20)
      // The bucket's promise: the burst, and 10 a minute from then on.
      expect(between(admitted, 0, second + 1)).toBeLessThanOrEqual(20 + second / 6)
    }
    for (let minute = 3; minute < 20; minute++)
      expect(between(admitted, minute * 60, minute * 60 + 60)).toBe(10)
  })

  it('a tier also keeps 100 an hour, and the hour is not charged by what the minute denies', async () => {
    const { limiter, clock } = setUp()
    const admitted = await hammer(limiter, clock, 3_600 - ((CASES_START_US / SECOND_US) % 3_600))
    expect(admitted).toHaveLength(100)
    const denied = await limiter.check('ip:192.0.2.1', { tier: 'anonymous', cost: 11 })
    expect(denied.allowed).toBe(false)
  })

  it('a tier with a burst tells both numbers: the limit and the burst', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('ip:192.0.2.1', { tier: 'anonymous' })
    expect(decision).toMatchObject({ limit: 10, remaining: 19, tier: 'anonymous', policy: 'tier' })
    expect(decision.binding?.quota).toEqual({ limit: 10, windowUs: MINUTE_US, burst: 20 })
  })

  it('an upgrade keeps what was used', async () => {
    const { limiter } = setUp()
    await limiter.check('user:42', { tier: 'free', cost: 60 })
    expect((await limiter.check('user:42', { tier: 'free' })).allowed).toBe(false)
    expect(await limiter.check('user:42', { tier: 'pro' })).toMatchObject({ allowed: true, remaining: 239 })
    expect((await limiter.check('user:42', { tier: 'free' })).allowed).toBe(false)
  })
})

describe('mistakes', () => {
  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 32, '1', '0x1', null, {}, 1n])(
    'a cost of %s is rejected by name',
    async cost => {
      const { limiter } = setUp()
      for (const how of ['check', 'peek'] as const) {
        const error = await rejection(limiter[how]('user:42', { policy: 'api', cost: cost as number }))
        expect(error.code).toBe('ERR_HEADGATE_INVALID_COST')
        expect(error.message).toMatch(/^cost: expected a whole number from 0 to 4294967295; got /)
      }
    },
  )

  it('unknown policies and tiers are rejected by name, with those that exist', async () => {
    const { limiter } = setUp()
    for (const name of ['apis', '', '__proto__', 'constructor', 'toString']) {
      const policy = await rejection(limiter.check('user:42', { policy: name as 'api' }))
      expect(policy.code).toBe('ERR_HEADGATE_UNKNOWN_POLICY')
      expect(policy.message).toContain('policy: expected one of api, login, banned; got ')
      const tier = await rejection(limiter.reset('user:42', { tier: name as 'free' }))
      expect(tier.code).toBe('ERR_HEADGATE_UNKNOWN_TIER')
    }
    const neither = await rejection(limiter.check('user:42', {} as { policy: 'api' }))
    expect(neither).toMatchObject({ field: 'policy', got: 'undefined' })
    expect(await rejection(limiter.usage('user:42', {} as { policy: 'api' }))).toMatchObject({
      field: 'policy',
      got: 'undefined',
    })
    expect(await rejection(limiter.check('user:42', 'api' as never))).toMatchObject({
      field: 'options',
      got: '"api"',
    })
    const both = await rejection(limiter.check('user:42', { policy: 'api', tier: 'free' } as never))
    expect(both).toMatchObject({ field: 'tier', got: '"free"' })
  })

  it('an option that is misspelt is rejected by name, with the one that was meant', () => {
    const policies = { api: slidingWindowLog({ limit: 1, window: '1m' }) }
    const misspelt = { policies, stroe: memoryStore() } as object
    const rejected = expect.objectContaining({
      code: 'ERR_HEADGATE_INVALID_OPTION',
      field: 'stroe',
      got: '"stroe"',
      suggestion: 'store',
      message: expect.stringMatching(/^stroe: expected one of .*; got "stroe"; did you mean "store"\?$/),
    })
    expect(() => createLimiter(misspelt)).toThrow(rejected)
    const config = defineConfig({})
    expect(() => createLimiter({ config, stroe: memoryStore() } as { config: typeof config })).toThrow(
      rejected,
    )
    createLimiter({ policies, stroe: undefined } as object)
  })

  it('bad scopes and subjects are rejected by name', async () => {
    const { limiter } = setUp()
    for (const scope of ['', 5, null, {}]) {
      const asked = limiter.check('user:42', { policy: 'api', scope: scope as string })
      // Null counts as unset.
      if (scope === null) expect((await asked).allowed).toBe(true)
      else expect((await rejection(asked)).message).toMatch(/^scope: expected a non-empty string; got /)
    }
    const error = await rejection(limiter.check('user' as 'user:1', { policy: 'api' }))
    expect(error.code).toBe('ERR_HEADGATE_INVALID_SUBJECT')
  })

  it('a misspelt policy or tier is answered with the one that was meant', async () => {
    const { limiter } = setUp()
    const error = await rejection(limiter.check('user:42', { policy: 'apis' as 'api' }))
    expect([error.code, error.suggestion]).toEqual(['ERR_HEADGATE_UNKNOWN_POLICY', 'api'])
    expect(error.message).toContain('did you mean "api"?')
  })

  it('a forgotten subject blames the subject', async () => {
    const { limiter } = setUp()
    const check = limiter.check as (...args: unknown[]) => Promise<unknown>
    for (const args of [[{ policy: 'api' }], [undefined, { policy: 'api' }], []]) {
      const error = await rejection(check.apply(limiter, args))
      expect([error.code, error.field]).toEqual(['ERR_HEADGATE_INVALID_SUBJECT', 'subject'])
    }
  })

  it('a limiter with an invalid store is rejected', () => {
    expect(() => createLimiter(undefined as never)).toThrow(/^options: expected an object/)
    const policies = { api: slidingWindowLog({ limit: 1, window: '1m' }) }
    expect(() => createLimiter({ store: {} as never, policies })).toThrow(/^store: expected what memoryStore/)
  })

  it('a limiter without any policy is rejected', () => {
    for (const options of [{}, { policies: {} }, { tiers: {} }]) {
      expect(() => createLimiter(options)).toThrow(
        /^policies: expected at least one policy or tier; got none/,
      )
    }
  })

  it('mistakes in names do not compile', async () => {
    const { limiter } = setUp()
    expectTypeOf(limiter.check).returns.resolves.toEqualTypeOf<Decision>()
    // @ts-expect-error no such policy
    await rejection(limiter.check('user:42', { policy: 'apis' }))
    // @ts-expect-error no such tier
    await rejection(limiter.check('user:42', { tier: 'gold' }))
    // @ts-expect-error a policy or a tier, not both
    await rejection(limiter.check('user:42', { policy: 'api', tier: 'free' }))
    // @ts-expect-error one of them
    await rejection(limiter.check('user:42', {}))
    // @ts-expect-error a reset has no cost
    await limiter.reset('user:42', { policy: 'api', cost: 1 })
    // @ts-expect-error a misspelt option
    await limiter.check('user:42', { policy: 'api', costs: 1 })
  })
})

describe('a store that fails', () => {
  it('a store that fails, fails the check with its own error, and a rejected promise stays one', async () => {
    const broken = new Error('connection lost')
    const store = changed(memoryStore(), {
      decide(check) {
        if (check.isPeek) throw broken
        return Promise.reject(broken)
      },
    })
    const limiter = createLimiter({ store, policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
    await expect(limiter.check('user:1', { policy: 'api' })).rejects.toBe(broken)
    await expect(limiter.peek('user:1', { policy: 'api' })).rejects.toBe(broken)
  })
})
