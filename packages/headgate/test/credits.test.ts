/** Credits, usage and the events of quotas, on the embedded store and on Redis. */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { HeadgateEvent, Limiter } from '../src/index.ts'
import { createLimiter, memoryStore, quota, slidingWindowLog } from '../src/index.ts'
import { redisStore } from '../src/redis.ts'
import { type ManualClock, manualClock } from '../src/testing/manual-clock.ts'
import { type RedisProcess, startRedis } from './support/redis-process.ts'

const DAY_MS = 86_400_000
const policies = {
  plan: [slidingWindowLog({ limit: 1_000, window: '1s' }), quota({ limit: 10, per: 'day' })],
  counted: quota({ limit: 10, per: 'day', overage: 'count', name: 'counted' }),
  carried: quota({ limit: 10, per: 'day', rollover: { most: 4 }, name: 'carried' }),
  rate: slidingWindowLog({ limit: 1_000, window: '1s' }),
  leased: {
    limits: [slidingWindowLog({ limit: 10_000, window: '1h' }), quota({ limit: 1_000, per: 'day' })],
    lease: { max: 40, ttl: '1m' },
  },
} as const

describe.each(['memory', 'redis'])('credits on %s', kind => {
  let server: RedisProcess | undefined
  let client: Redis | undefined
  let clock: ManualClock
  let limiter: Limiter<keyof typeof policies & string>
  let other: Limiter<keyof typeof policies & string>
  let events: HeadgateEvent[]
  let subjects = 0
  let user = ''

  beforeAll(async () => {
    if (kind === 'memory') return
    server = await startRedis()
    client = new Redis({ port: server.port })
  })
  afterAll(async () => {
    client?.disconnect()
    await server?.stop()
  })
  beforeEach(() => {
    clock = manualClock()
    events = []
    user = `user:${++subjects}`
    const store = () =>
      client === undefined
        ? memoryStore({ clock })
        : redisStore(client, { testClockUs: () => clock.nowUs(), deadlineMs: 5_000 } as never)
    const onEvent = (event: HeadgateEvent) => void (event.type === 'threshold' && events.push(event))
    limiter = createLimiter({ store: store(), policies, onEvent })
    other = client === undefined ? limiter : createLimiter({ store: store(), policies, onEvent })
  })
  afterEach(async () => {
    await limiter.close()
    await other.close()
  })

  const ask = async (cost: number, policy: 'plan' | 'counted' | 'carried' = 'plan') =>
    (await limiter.check(user, { policy, cost })).allowed

  it('the quota is used first, then credits, and credits outlast the period', async () => {
    expect(await limiter.credit(user, 5, { policy: 'plan', id: 'a' })).toMatchObject({
      added: true,
      quotas: [{ policy: 'plan', quota: 'quota-day', used: 0, credits: 5, remaining: 15 }],
    })
    expect(await ask(12)).toBe(true)
    expect(await limiter.usage(user, { policy: 'plan' })).toMatchObject([
      { used: 12, paidWithCredits: 2, credits: 3, remaining: 3 },
    ])
    expect(await ask(4)).toBe(false)
    clock.advanceMs(DAY_MS)
    expect(await limiter.usage(user, { policy: 'plan' })).toMatchObject([
      { used: 0, credits: 3, remaining: 13, previous: { used: 12, paidWithCredits: 2, overage: 0 } },
    ])
    expect(await ask(13)).toBe(true)
    expect(await ask(1)).toBe(false)
    expect(await limiter.usage(user, { policy: 'plan' })).toMatchObject([
      { used: 13, credits: 0, remaining: 0 },
    ])
  })

  it('an id credits once, also from another process, and again after seven days', async () => {
    await limiter.credit(user, 5, { policy: 'plan', id: 'same' })
    expect(await other.credit(user, 5, { policy: 'plan', id: 'same' })).toMatchObject({
      added: false,
      quotas: [{ credits: 5 }],
    })
    expect((await limiter.credit(user, 5, { policy: 'plan', id: 'other' })).added).toBe(true)
    if (kind === 'memory') {
      clock.advanceMs(7 * DAY_MS)
      expect((await limiter.credit(user, 5, { policy: 'plan', id: 'same' })).quotas[0]?.credits).toBe(15)
    } else {
      const [mark = ''] = (await client?.keys(`*${user}}*:credit:same`)) ?? []
      const leftMs = (await client?.pttl(mark)) ?? 0
      expect(leftMs).toBeGreaterThan(7 * DAY_MS - 60_000)
      expect(leftMs).toBeLessThanOrEqual(7 * DAY_MS)
    }
  })

  it('a credit without options is refused by name', async () => {
    const error = { code: 'ERR_HEADGATE_INVALID_OPTION', field: 'options', expected: 'an object' }
    for (const options of [undefined, null, 'a'])
      await expect(limiter.credit(user, 5, options as never)).rejects.toMatchObject(error)
  })

  it('credits of a period end with it', async () => {
    await limiter.credit(user, 5, { policy: 'plan', id: 'gift', expires: 'period' })
    expect(await ask(12)).toBe(true)
    expect(await limiter.usage(user, { policy: 'plan' })).toMatchObject([
      { used: 12, paidWithCredits: 0, periodCredits: 5, remaining: 3 },
    ])
    clock.advanceMs(DAY_MS)
    expect(await limiter.usage(user, { policy: 'plan' })).toMatchObject([
      { remaining: 10, periodCredits: 0, credits: 0 },
    ])
  })

  it('a refund gives credits back, and a reset leaves them', async () => {
    await limiter.credit(user, 5, { policy: 'plan', id: 'a' })
    const decision = await limiter.check(user, { policy: 'plan', cost: 13 })
    expect(await limiter.refund(decision, 4)).toBe(4)
    expect(await limiter.usage(user, { policy: 'plan' })).toMatchObject([
      { used: 9, credits: 5, paidWithCredits: 0, remaining: 6 },
    ])
    await limiter.reset(user)
    expect(await limiter.usage(user, { policy: 'plan' })).toMatchObject([
      { used: 0, credits: 5, remaining: 15 },
    ])
  })

  it('with overage credits are used before anything is counted beyond', async () => {
    await limiter.credit(user, 2, { policy: 'counted', id: 'a' })
    for (let request = 0; request < 15; request++) expect(await ask(1, 'counted')).toBe(true)
    const [usage] = await limiter.usage(user, { policy: 'counted' })
    expect(usage).toMatchObject({ used: 15, paidWithCredits: 2, overage: 3, credits: 0, remaining: 0 })
    clock.advanceMs(DAY_MS)
    const [next] = await limiter.usage(user, { policy: 'counted' })
    expect(next?.previous).toMatchObject({ used: 15, paidWithCredits: 2, overage: 3 })
  })

  it('usage tells what was carried over', async () => {
    await ask(3, 'carried')
    clock.advanceMs(DAY_MS)
    expect(await limiter.usage(user, { policy: 'carried' })).toMatchObject([
      { carriedOver: 4, remaining: 14 },
    ])
  })

  it('80 and 100 percent are told once in a period, whoever asks and whatever is given back', async () => {
    const told = () => events.map(event => (event as { percent: number }).percent)
    const decisions = []
    for (let request = 0; request < 10; request++) {
      const asked = request % 2 === 0 ? limiter : other
      decisions.push(await asked.check(user, { policy: 'plan' }))
    }
    expect(told()).toEqual([80, 100])
    await other.refund(decisions.at(-1) as never)
    await limiter.refund(decisions.at(-2) as never)
    await other.refund(decisions.at(-3) as never)
    expect(await ask(3)).toBe(true)
    expect(told()).toEqual([80, 100])
    expect(events[0]).toEqual({
      type: 'threshold',
      policy: 'plan',
      quota: 'quota-day',
      percent: 80,
      subject: user,
    })
    clock.advanceMs(DAY_MS)
    await ask(10)
    // One charge that reaches both tells both.
    expect(told()).toEqual([80, 100, 80, 100])
    clock.advanceMs(DAY_MS)
    await ask(12, 'counted')
    expect(told().slice(4)).toEqual([80, 100])
  })

  it('80 and 100 percent are told once of a quota that is leased, too', async () => {
    let leased = 0
    for (let request = 0; request < 1_000; request++)
      if ((await limiter.check(user, { policy: 'leased' })).leased) leased++
    expect(leased > 0).toBe(kind === 'redis')
    expect(events).toMatchObject([
      { policy: 'leased', quota: 'quota-day', percent: 80, subject: user },
      { policy: 'leased', quota: 'quota-day', percent: 100, subject: user },
    ])
  })

  it.each([
    [-1, { policy: 'plan', id: 'a' }, /^units: expected a whole number/],
    [0, { policy: 'plan', id: 'a' }, /^units: /],
    [1.5, { policy: 'plan', id: 'a' }, /^units: /],
    [1, { policy: 'plan' }, /^id: expected up to 64/],
    [1, { policy: 'plan', id: 'a b' }, /^id: /],
    [1, { policy: 'plan', id: 'a', expires: 'soon' }, /^expires: expected 'never' or 'period'/],
    [1, { policy: 'rate', id: 'a' }, /^policy: .* quota; got "rate"$/],
    [1, { policy: 'nope', id: 'a' }, /policy/],
  ])('a credit of %j with %j is rejected by name, and adds nothing', async (units, options, message) => {
    await expect(limiter.credit(user, units, options as never)).rejects.toThrow(message)
    expect(await limiter.usage(user, { policy: 'plan' })).toMatchObject([
      { credits: 0, used: 0, remaining: 10 },
    ])
  })
})
