/** Redis's clock picks the period of a quota, and its key says all there is to know. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { calendarOf, digitOf, spanMs } from '../../src/algorithms/calendar.ts'
import { type QuotaLimit, quota } from '../../src/algorithms/quota.ts'
import type { Check } from '../../src/check/check.ts'
import { createLimiter } from '../../src/index.ts'
import { leaseLimits } from '../../src/policy/leases.ts'
import { type RedisStore, redisStore } from '../../src/redis.ts'
import { askStore } from '../../src/store/ask-store.ts'
import { startShiftedRedis } from '../support/clock-shim.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { runWorkers, type SpendReport } from './workers.ts'

const DAY_MS = 86_400_000
const UNITS = 10
const ASKS = 12
/** Further off than a period and the next. */
const SHIFTS_MS = [0, 70 * DAY_MS, -70 * DAY_MS]
const LIMITS: readonly QuotaLimit[] = [
  quota({ limit: UNITS, per: 'day' }),
  quota({ limit: UNITS, per: 'month', timeZone: 'America/New_York', anchor: 15 }),
  quota({ limit: UNITS, per: 'year', anchor: '04-01' }),
]
const month = quota({ limit: 3, per: 'month' })

let redis: RedisProcess
let client: Redis

beforeAll(async () => {
  redis = await startRedis()
  client = new Redis({ port: redis.port })
})
afterAll(async () => {
  client?.disconnect()
  await redis?.stop()
})

it('processes whose clocks are months ahead and behind share a quota exactly with one that is right', async () => {
  const checks: readonly Check[] = LIMITS.map((limit, index) => ({
    subject: 'user:shared',
    scope: 'global',
    name: `proof${index}.${limit.id}`,
    limit,
    cost: 1,
  }))
  const reports: SpendReport[] = await runWorkers(
    SHIFTS_MS.map((clockShiftMs, index) => ({
      job: 'spend',
      client: index === 1 ? 'node-redis' : 'ioredis',
      ports: [redis.port],
      cluster: false,
      recordCalls: true,
      checks,
      times: ASKS,
      clockShiftMs,
    })),
  )
  for (const [index, limit] of LIMITS.entries()) {
    const answers = reports.flatMap(report =>
      report.answers.filter((_, position) => position % LIMITS.length === index),
    )
    expect(answers).toHaveLength(SHIFTS_MS.length * ASKS)
    expect(answers.filter(answer => answer.charged === 0).length, limit.id).toBe(UNITS)
  }
})

it('quotas of one number keep their own calendar and terms', async () => {
  const shifted = await startShiftedRedis()
  const own = new Redis({ port: shifted.port })
  const same = { limit: 3, per: 'day' } as const
  const policies = {
    counted: quota({ ...same, overage: 'count' }),
    plain: quota(same),
    carried: quota({ ...same, rollover: { most: 2 } }),
    east: quota({ ...same, timeZone: 'Pacific/Kiritimati' }),
    west: quota({ ...same, timeZone: 'Pacific/Pago_Pago' }),
  }
  try {
    shifted.shiftClock((Date.parse('2027-10-29T12:00Z') - Date.now()) * 1_000)
    const limiter = createLimiter({ store: redisStore(own, { deadlineMs: 10_000 }), policies })
    const admittedOf = async (policy: keyof typeof policies): Promise<number> => {
      let admitted = 0
      for (let asked = 0; asked < 6; asked++)
        if ((await limiter.check('user:same', { policy })).allowed) admitted++
      return admitted
    }
    const names = Object.keys(policies) as (keyof typeof policies)[]
    for (const policy of names) expect(await admittedOf(policy), policy).toBe(policy === 'counted' ? 6 : 3)
    const endOf = async (policy: keyof typeof policies): Promise<string> => {
      const [usage] = await limiter.usage('user:same', { policy })
      expect(usage?.used, policy).toBe(policy === 'counted' ? 6 : 3)
      return new Date(usage?.endsAt as number).toISOString()
    }
    expect(await endOf('plain')).toBe('2027-10-30T00:00:00.000Z')
    expect(await endOf('counted')).toBe('2027-10-30T00:00:00.000Z')
    expect(await endOf('east')).toBe('2027-10-30T10:00:00.000Z')
    expect(await endOf('west')).toBe('2027-10-30T11:00:00.000Z')
    await limiter.close()
  } finally {
    own.disconnect()
    await shifted.stop()
  }
})

it('is exact in the first hour of a day of 26 hours', async () => {
  const shifted = await startShiftedRedis()
  const own = new Redis({ port: shifted.port })
  try {
    shifted.shiftClock((Date.parse('2027-10-30T22:10Z') - Date.now()) * 1_000)
    const policies = { api: quota({ limit: 3, per: 'day', timeZone: 'Antarctica/Troll' }) }
    const limiter = createLimiter({ store: redisStore(own, { deadlineMs: 10_000 }), policies })
    const answers: boolean[] = []
    for (let time = 0; time < 6; time++)
      answers.push((await limiter.check('user:1', { policy: 'api' })).allowed)
    expect(answers).toEqual([true, true, true, false, false, false])
    await limiter.close()
  } finally {
    own.disconnect()
    await shifted.stop()
  }
})

it('a call that fits neither period is made once more, and if the clock has moved again the failure mode decides', async () => {
  const shifted = await startShiftedRedis()
  const own = new Redis({ port: shifted.port })
  try {
    const limiter = createLimiter({
      store: redisStore(own, { deadlineMs: 10_000, shared: true }),
      policies: { api: month },
    })
    expect((await limiter.check('user:1', { policy: 'api' })).source).toBe('redis')
    let calls = 0
    const send = own.sendCommand.bind(own)
    own.sendCommand = (command, ...more) => {
      const isAsked = command.args.some(arg => String(arg).includes('{user:1}'))
      if (isAsked) shifted.shiftClock(++calls * 200 * DAY_MS * 1_000)
      return send(command, ...more)
    }
    const { allowed, source } = await limiter.check('user:1', { policy: 'api' })
    expect([allowed, source]).toEqual([true, 'local'])
    expect(calls).toBe(2)
    own.sendCommand = send
    expect((await limiter.check('user:1', { policy: 'api' })).source).toBe('redis')
    await limiter.close()
  } finally {
    own.disconnect()
    await shifted.stop()
  }
})

describe('the key of a quota', () => {
  async function opened() {
    const store = redisStore(client, { deadlineMs: 10_000 })
    const limiter = createLimiter({ store, policies: { api: month } })
    await limiter.peek('user:0', { policy: 'api' })
    return limiter
  }
  const keyOf = (id: string): string => `ratelimit:v2:{user:${id}}:global:api.quota-month`
  const period = () => calendarOf(month).at(Date.now())

  it('is a number that ends in the digit of the period, and outlives it by the longest one', async () => {
    const limiter = await opened()
    for (const remaining of [2, 1, 0]) {
      const decision = await limiter.check('user:1', { policy: 'api' })
      expect(decision).toMatchObject({ allowed: true, remaining })
      expect(Math.abs((decision.resetAt as number) - period().endMs)).toBeLessThan(1_000)
    }
    expect(await limiter.check('user:1', { policy: 'api' })).toMatchObject({ allowed: false, remaining: 0 })
    expect(await client.get(keyOf('1'))).toBe(`3${digitOf(period())}`)
    expect(await client.pexpiretime(keyOf('1'))).toBe(period().endMs + spanMs('month'))
    await limiter.close()
  })

  it('takes back a charge of this period', async () => {
    const limiter = await opened()
    const first = await limiter.check('user:2', { policy: 'api', cost: 2 })
    expect(await limiter.refund(first)).toBe(2)
    expect((await limiter.check('user:2', { policy: 'api', cost: 3 })).allowed).toBe(true)
    await limiter.close()
  })

  it('of the period before leaves everything, and is remembered beside the new one', async () => {
    const limiter = await opened()
    const { startMs } = period()
    const before = `3${(digitOf(period()) + 9) % 10}`
    await client.set(keyOf('3'), before, 'PXAT', startMs + spanMs('month'))
    expect(await limiter.check('user:3', { policy: 'api' })).toMatchObject({ allowed: true, remaining: 2 })
    expect(await client.get(keyOf('3'))).toBe(`30000001${digitOf(period())}`)
    await limiter.close()
  })

  it.each(['persisted', 'of far ahead'])('that is %s is put right by the next charge', async how => {
    const limiter = await opened()
    const key = keyOf(how === 'persisted' ? '4' : '5')
    await client.set(key, `1${digitOf(period())}`)
    if (how !== 'persisted') await client.pexpire(key, 4 * spanMs('month'))
    expect((await limiter.check(key.slice(14, 20), { policy: 'api' })).allowed).toBe(true)
    expect(await client.pexpiretime(key)).toBe(period().endMs + spanMs('month'))
    await limiter.close()
  })

  it('that holds something else fails its own check and is left alone', async () => {
    const limiter = await opened()
    await client.set(keyOf('6'), 'mine')
    expect((await limiter.check('user:6', { policy: 'api' })).source).toBe('local')
    expect(await client.get(keyOf('6'))).toBe('mine')
    await limiter.close()
  })
})

it('units that a process leased before the end of a period are not spent after it', async () => {
  const shifted = await startShiftedRedis()
  const endUs = Date.parse('2027-05-01') * 1_000
  const beforeMs = 700
  const offsetUs = endUs - (Date.now() + beforeMs) * 1_000
  shifted.shiftClock(offsetUs)
  const clients = [1, 2].map(() => new Redis({ port: shifted.port }))
  const stores = clients.map(one => redisStore(one, { deadlineMs: 10_000, processes: 2 }))
  try {
    const [limit] = leaseLimits('lease', [quota({ limit: 4_000, per: 'month' })], { max: 100, ttl: '1m' })
    const check = { subject: 'user:hot', scope: 'global', name: 'api.quota', limit: limit as Limit, cost: 1 }
    const admitted = { before: 0, after: 0 }
    const leased = { before: 0, after: 0 }
    /** Returns whether it was admitted. */
    const ask = async (store: RedisStore): Promise<boolean> => {
      const askedAtUs = Date.now() * 1_000 + offsetUs
      const {
        charged,
        verdicts,
        leased: isLeased,
      } = await askStore(store, { alternatives: [[check]], shadow: [] })
      const chargedAtUs = verdicts[0]?.[0]?.chargedAtUs ?? Number.POSITIVE_INFINITY
      if (charged < 0) return false
      if (askedAtUs >= endUs) expect(chargedAtUs).toBeGreaterThanOrEqual(endUs)
      const period = chargedAtUs < endUs ? 'before' : 'after'
      admitted[period]++
      if (isLeased) leased[period]++
      return true
    }
    // So fast that leases are held when the period ends, and so slow that it ends before the units do.
    while (Date.now() * 1_000 + offsetUs < endUs + 50_000) {
      await Promise.all(stores.map(ask))
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    for (const store of stores) while (await ask(store)) {}
    expect(admitted.before).toBeLessThanOrEqual(4_000)
    expect(admitted.after).toBe(4_000)
    expect(leased.after).toBeGreaterThan(0)
  } finally {
    for (const store of stores) await store.close()
    for (const one of clients) one.disconnect()
    await shifted.stop()
  }
})
