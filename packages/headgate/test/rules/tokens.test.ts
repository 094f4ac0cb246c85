/** `tokens` of a rule: what a request reserves besides, under the rule's own settings, and how it is settled by policy. */
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defineConfig } from '../../src/config.ts'
import {
  createLimiter,
  decisionProblem,
  memoryStore,
  type RequestFacts,
  type Store,
  slidingWindowLog,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

const policies = {
  calls: slidingWindowLog({ limit: 100, window: '1h' }),
  prompt: slidingWindowLog({ limit: 1_000, window: '1h' }),
  answer: [
    slidingWindowLog({ limit: 500, window: '1h' }),
    tokenBucket({ capacity: 10_000, refillPerSecond: 0.001 }),
  ],
} as const
const tokens = {
  input: { policy: 'prompt', reserve: 100 },
  output: { policy: 'answer', reserve: 50, from: 'max_tokens' },
} as const
const match = { path: '/v1/*' } as const
const facts = (subject: string, more: Partial<RequestFacts<never>> = {}): RequestFacts<never> => ({
  subject,
  method: 'POST',
  path: '/v1/chat',
  ...more,
})

let redis: RedisProcess
const closers: (() => unknown)[] = []
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(async () => {
  for (const close of closers.reverse()) await close()
  await redis.stop()
})

const stores: readonly (readonly [string, () => Promise<Store>])[] = [
  ['memory', async () => memoryStore()],
  [
    'redis',
    async () => {
      const client = createClient({ url: redis.url })
      await client.connect()
      closers.push(() => client.destroy())
      return redisStore(client, { deadlineMs: 5_000 })
    },
  ],
]

describe.each(stores)('in %s', (_name, open) => {
  async function limiterOf(rule: object = {}, file: object = {}) {
    const config = defineConfig({
      policies,
      default: { policy: 'calls' },
      rules: [{ name: 'model', match, policy: 'calls', tokens, ...rule }],
      ...file,
    })
    const limiter = createLimiter({ config, store: await open(), onWarning: () => {} })
    const subject = `user:${Math.random()}`
    const used = async (policy: 'prompt' | 'answer' | 'calls', whose = subject) => {
      const { verdicts } = await limiter.peek(whose, { policy })
      return (verdicts[0]?.limit ?? 0) - (verdicts[0]?.remaining ?? 0)
    }
    return { limiter, subject, used }
  }

  it('a request says which meters it reserves, and charges each its own estimate', async () => {
    const { limiter, subject, used } = await limiterOf()
    const request = await limiter.request(facts(subject))
    expect(request.tokens.map(({ meter, policy }) => [meter, policy])).toEqual([
      ['input', 'prompt'],
      ['output', 'answer'],
    ])
    const reserved = await limiter.reserveTokens(facts(subject), { output: 300 })
    expect(reserved.allowed).toBe(true)
    expect([await used('calls'), await used('prompt'), await used('answer')]).toEqual([1, 100, 300])
    await limiter.settle(reserved, { prompt: 20, answer: 320 })
    expect([await used('prompt'), await used('answer')]).toEqual([20, 320])
    // Once.
    await limiter.settle(reserved, { prompt: 0, answer: 0 })
    expect([await used('prompt'), await used('answer')]).toEqual([20, 320])
  })

  it('all meters or none are charged, and the denial names the one that had no room', async () => {
    const { limiter, subject, used } = await limiterOf()
    const denied = await limiter.reserveTokens(facts(subject), { output: 501 })
    expect([denied.allowed, denied.binding?.name.split('.')[0]]).toEqual([false, 'answer'])
    expect([await used('prompt'), await used('answer')]).toEqual([0, 0])
    await limiter.reserveTokens(facts(subject), { output: 400 })
    const next = await limiter.reserveTokens(facts(subject), { output: 101 })
    expect([next.allowed, next.binding?.name.split('.')[0]]).toEqual([false, 'answer'])
    // A smaller one still fits: the denial of another amount says nothing about it.
    expect((await limiter.reserveTokens(facts(subject), { output: 100 })).allowed).toBe(true)
    const prompt = await limiter.reserveTokens(facts(subject), { input: 900, output: 0 })
    expect([prompt.allowed, prompt.binding?.name.split('.')[0]]).toEqual([false, 'prompt'])
  })

  it('the estimate of a policy that is not settled stands', async () => {
    const { limiter, subject, used } = await limiterOf()
    const reserved = await limiter.reserveTokens(facts(subject))
    await limiter.settle(reserved, { answer: 7 })
    expect([await used('prompt'), await used('answer')]).toEqual([100, 7])
  })

  it('refund gives back every meter', async () => {
    const { limiter, subject, used } = await limiterOf()
    const reserved = await limiter.reserveTokens(facts(subject), { output: 200 })
    await limiter.refund(reserved)
    expect([await used('prompt'), await used('answer')]).toEqual([0, 0])
  })

  it('a rule in shadow, or one whose policy is, watches and never denies', async () => {
    for (const { limiter, subject } of [
      await limiterOf({ mode: 'shadow' }),
      await limiterOf({}, { policies: { ...policies, answer: { limits: policies.answer, mode: 'shadow' } } }),
    ]) {
      for (let time = 0; time < 3; time++) {
        const reserved = await limiter.reserveTokens(facts(subject), { output: 400 })
        expect(reserved.allowed).toBe(true)
        expect(reserved.shadow.some(({ name }) => name.startsWith('answer.'))).toBe(true)
        await limiter.settle(reserved, { prompt: 1, answer: 400 })
      }
    }
  })

  it('everyone shares the tokens of a rule that is for everyone', async () => {
    const { limiter, subject } = await limiterOf({ per: 'everyone', scope: `s${Math.random()}` })
    expect((await limiter.reserveTokens(facts(subject), { output: 400 })).allowed).toBe(true)
    expect((await limiter.reserveTokens(facts(`${subject}2`), { output: 400 })).allowed).toBe(false)
  })

  it('an address pays for the subjects that anybody can make up', async () => {
    const { limiter } = await limiterOf()
    const address = `ip:10.0.${Math.floor(Math.random() * 256)}.${Math.floor(Math.random() * 256)}`
    const minted = (key: string) =>
      facts(key, { perAddress: { address, minted: [{ subject: key, times: 2 }] } })
    const passed: boolean[] = []
    for (const key of ['a', 'b', 'c']) {
      const { allowed } = await limiter.reserveTokens(minted(`apikey:${address}${key}`), { output: 400 })
      passed.push(allowed)
    }
    // Twice 500 are 1,000.
    expect(passed).toEqual([true, true, false])
  })

  it('every level that decides reserves its meters', async () => {
    const { limiter, subject, used } = await limiterOf(
      {},
      {
        levels: 'all',
        rules: [
          { name: 'model', match, policy: 'calls', tokens: { input: tokens.input } },
          { name: 'users', match: { subject: 'user' }, tokens: { output: tokens.output } },
        ],
      },
    )
    const reserved = await limiter.reserveTokens(facts(subject))
    expect(reserved.allowed).toBe(true)
    expect([await used('prompt'), await used('answer')]).toEqual([100, 50])
    await limiter.settle(reserved, { prompt: 1, answer: 2 })
    expect([await used('prompt'), await used('answer')]).toEqual([1, 2])
  })

  it('a request without such a rule reserves nothing', async () => {
    const { limiter, subject, used } = await limiterOf()
    const other = facts(subject, { path: '/other' })
    expect((await limiter.request(other)).tokens).toEqual([])
    const reserved = await limiter.reserveTokens(other, { output: 9_999 })
    expect([reserved.allowed, reserved.source]).toEqual([true, 'none'])
    await limiter.settle(reserved, { answer: 5 })
    expect(await used('answer')).toBe(0)
  })

  it('mode compare decides here, and settles both', async () => {
    const { limiter, subject } = await limiterOf({ mode: 'compare' })
    const reserved = await limiter.reserveTokens(facts(subject), { output: 400 })
    expect(reserved.allowed).toBe(true)
    await limiter.settle(reserved, { prompt: 1, answer: 10 })
    expect((await limiter.reserveTokens(facts(subject), { output: 400 })).allowed).toBe(true)
  })

  it('overrides of a policy reach its meters: for everybody, and for one caller', async () => {
    const { limiter, subject } = await limiterOf()
    const isAllowed = async (whose: string, output: number) => {
      await limiter.overrides.read()
      const reserved = await limiter.reserveTokens(facts(whose), { output })
      await limiter.refund(reserved).catch(() => 0)
      return reserved.allowed
    }
    const ttl = '1h'
    await limiter.overrides.set({ policy: 'answer', limits: { 'log-1h': 600 }, ttl })
    expect([await isAllowed(subject, 600), await isAllowed(subject, 601)]).toEqual([true, false])
    await limiter.overrides.set({ subject, policy: 'answer', limits: { 'log-1h': 800 }, ttl })
    expect([await isAllowed(subject, 800), await isAllowed(subject, 801)]).toEqual([true, false])
    expect(await isAllowed(`${subject}2`, 700)).toBe(false)
    const { limits } = await limiter.inspect(subject)
    expect(limits.find(({ name }) => name === 'answer.log-1h')?.limit).toBe(800)
    expect(limiter.explain(facts(subject)).text).toContain('sliding-window-log 800 in 1h')
    await limiter.overrides.remove({ policy: 'answer' })
  })

  it('an override that would miss the meters says what would reach them', async () => {
    const { limiter, subject } = await limiterOf()
    const hint = (target: string) =>
      `override limits: expected one of log-1h, or ${target} a policy that has it (answer); got "bucket"`
    const raised = { limits: { bucket: 9_000 }, ttl: '1h' } as const
    await expect(limiter.overrides.set({ rule: 'model', ...raised })).rejects.toThrow(
      hint('in place of the rule'),
    )
    await expect(limiter.overrides.set({ subject, rule: 'model', ...raised })).rejects.toThrow(
      hint('in place of the rule'),
    )
    await expect(limiter.overrides.set({ subject, ...raised })).rejects.toThrow(hint('beside the subject'))
  })

  it('bans and the switches of the fleet hold for tokens, too', async () => {
    const { limiter, subject } = await limiterOf()
    const reserve = async (output: number) => {
      await limiter.control.read()
      return limiter.reserveTokens(facts(subject), { output })
    }
    await limiter.control.set({ multiplier: 0.5 })
    expect(await reserve(251)).toMatchObject({ allowed: false, limit: 250 })
    await limiter.control.set({ multiplier: 0 })
    expect(await reserve(9_999)).toMatchObject({ allowed: true, reason: 'paused' })
    await limiter.control.set({ multiplier: 1, enabled: false })
    expect(await reserve(9_999)).toMatchObject({ allowed: true, reason: 'disabled' })
    await limiter.control.set({ enabled: true })
    expect(await reserve(501)).toMatchObject({ allowed: false, limit: 500 })
    await limiter.ban(subject, '1h')
    await limiter.overrides.read()
    expect(await reserve(1)).toMatchObject({ allowed: false, reason: 'banned' })
    await limiter.unban(subject)
    await limiter.overrides.read()
    expect(await reserve(1)).toMatchObject({ allowed: true, reason: 'within-limit' })
  })

  it('a denial says tokens where tokens are used up, and requests where requests are', async () => {
    const answer = [
      slidingWindowLog({ limit: 500, window: '1h' }),
      slidingWindowLog({ limit: 2, window: '1h', counts: 'requests' }),
    ]
    const { limiter, subject } = await limiterOf(
      { tokens: { output: { policy: 'answer', reserve: 1 } } },
      { policies: { ...policies, answer } },
    )
    const detailOf = async (who: string, output: number) =>
      decisionProblem(await limiter.reserveTokens(facts(who), { output })).body.detail
    await limiter.reserveTokens(facts(subject), { output: 500 })
    expect(await detailOf(subject, 1)).toContain('500 tokens per 1h')
    const other = `${subject}-other`
    for (const output of [1, 1]) await limiter.reserveTokens(facts(other), { output })
    expect(await detailOf(other, 1)).toContain('2 requests per 1h')
  })

  it('inspect shows what is left of each meter', async () => {
    const { limiter, subject } = await limiterOf()
    await limiter.reserveTokens(facts(subject), { output: 200 })
    const { limits } = await limiter.inspect(subject)
    expect(limits.find(({ name }) => name.startsWith('answer.log'))?.remaining).toBe(300)
  })

  it('bad numbers are rejected by name, and change nothing', async () => {
    const { limiter, subject, used } = await limiterOf()
    expect(() => limiter.reserveTokens(facts(subject), { output: 1.5 })).toThrow(
      'estimates.output: expected a whole number from 0 to 4294967295; got 1.5',
    )
    const reserved = await limiter.reserveTokens(facts(subject))
    for (const actual of [{ answer: -1 }, { answer: '3' as unknown as number }]) {
      await expect(limiter.settle(reserved, actual)).rejects.toMatchObject({
        code: 'ERR_HEADGATE_INVALID_COST',
        field: 'actual.answer',
      })
    }
    await expect(limiter.settle(reserved, { prompt: 1, anwser: 10 })).rejects.toMatchObject({
      code: 'ERR_HEADGATE_INVALID_OPTION',
      field: 'actual.anwser',
      expected: expect.stringContaining('answer'),
      suggestion: 'answer',
    })
    expect(await used('answer')).toBe(50)
  })
})

describe('in code', () => {
  const limiter = createLimiter({ policies })
  const used = async (subject: string) =>
    Promise.all(
      (['prompt', 'answer'] as const).map(async policy => {
        const { verdicts } = await limiter.peek(subject, { policy })
        return (verdicts[0]?.limit ?? 0) - (verdicts[0]?.remaining ?? 0)
      }),
    )

  it('two policies of one reservation have an estimate each, and are settled by name', async () => {
    const subject = 'user:two'
    const also = [{ subject, policy: 'answer', cost: 400 }] as const
    const { decision, settle } = await limiter.reserve(subject, { policy: 'prompt', cost: 120, also })
    expect(decision.allowed).toBe(true)
    expect(await used(subject)).toEqual([120, 400])
    await settle({ prompt: 100, answer: 450 })
    expect(await used(subject)).toEqual([100, 450])
    const denied = await limiter.reserve(subject, { policy: 'prompt', cost: 1, also })
    expect([denied.decision.allowed, denied.decision.binding?.name.split('.')[0]]).toEqual([false, 'answer'])
    expect(await used(subject)).toEqual([100, 450])
  })

  it('a policy that is named twice is charged once, the higher of the two', async () => {
    const subject = 'user:once'
    await limiter.check(subject, {
      policy: 'prompt',
      cost: 5,
      also: [{ subject, policy: 'prompt', cost: 9 }],
    })
    expect(await used(subject)).toEqual([9, 0])
  })

  it('a cost that is no number is rejected by name', async () => {
    const also = [{ subject: 'org:1', policy: 'answer', cost: -1 }] as const
    await expect(limiter.check('user:1', { policy: 'prompt', also })).rejects.toMatchObject({
      code: 'ERR_HEADGATE_INVALID_COST',
      field: 'also.cost',
    })
  })
})
