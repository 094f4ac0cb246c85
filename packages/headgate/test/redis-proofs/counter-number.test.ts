/**
 * The counter is one number in Redis, a text where a number cannot say it, and of a lone check its time to live is the clock.
 * These tests run on the server's own clock, which the equivalence of engine and scripts cannot.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Limit, NOT_CHARGED } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import type { Check } from '../../src/check/check.ts'
import { defineConfig } from '../../src/config.ts'
import { createLimiter } from '../../src/index.ts'
import { type Answer, askStore, type Verdict } from '../../src/store/ask-store.ts'
import { type RedisStore, redisStoreIn } from '../../src/store/redis/redis-store.ts'
import { redisKey } from '../../src/subject/key.ts'
import { type Clock, systemClock, systemTimers } from '../../src/time/clock.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

const MOST_IN_NUMBER = 9_999_999

let redis: RedisProcess
let client: Redis
let store: RedisStore
let subjects = 0

beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.port)
  store = directRedisStore(client, { deadlineMs: 10_000 })
  await store.ready()
})
beforeEach(() => void subjects++)
afterAll(async () => {
  await store?.close()
  client?.disconnect()
  await redis?.stop()
})

function checkOf(limit: Limit, cost = 1): Check {
  return { subject: `user:${subjects}`, scope: 'global', name: `proof.${limit.id}`, limit, cost }
}

function keyOf({ subject, scope, name }: Check): string {
  return redisKey({ prefix: 'ratelimit', tenant: '', subject, scope, name })
}

async function ask(check: Check, isPeek = false): Promise<Verdict> {
  const answer = (await askStore(store, { alternatives: [[check]], shadow: [] }, isPeek)) as Answer
  return answer.verdicts[0]?.[0] as Verdict
}

async function serverMs(): Promise<number> {
  const [seconds, micros] = await client.time()
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
}

/** Waits until so much of the current window is left that a test fits into it. */
async function roomInWindow(windowMs: number, neededMs: number): Promise<number> {
  const leftMs = windowMs - ((await serverMs()) % windowMs)
  if (leftMs < neededMs) await sleep(leftMs + 2)
  return Math.floor((await serverMs()) / windowMs)
}

describe("a lone check on the server's clock", () => {
  it('a lone check is what the engine says at that millisecond, over several windows, alone and beside others', async () => {
    const limit = slidingWindowCounter({ limit: 12, window: '1s' })
    const { algorithm } = limit
    const state = algorithm.empty()
    const out = { waitUs: 0, remaining: 0, resetAfterUs: 0, chargedAtUs: 0 }
    let charged = 0
    let denied = 0
    for (let round = 0; round < 150; round++) {
      const check = checkOf(limit, 1 + (round % 3))
      // Every fourth comes in a call with another, on which a lone check has no part.
      const beside = round % 4 === 0 ? ask({ ...check, subject: `user:other-${round}` }) : null
      const verdict = await ask(check)
      await beside
      if (verdict.allowed) {
        algorithm.decide(limit, state, check.cost, verdict.chargedAtUs as number, true, out)
        expect(out.chargedAtUs, `round ${round}: the engine admits at that time`).not.toBe(NOT_CHARGED)
        expect(verdict.remaining).toBe(out.remaining)
        expect(Math.abs(verdict.resetAfterUs - out.resetAfterUs)).toBeLessThanOrEqual(1_000)
        charged++
      } else denied++
      await sleep(round % 10 === 0 ? 150 : 12)
    }
    expect(charged).toBeGreaterThan(30)
    expect(denied).toBeGreaterThan(30)
  })

  it('a charge of a lone check is given back to its window, and to no other', async () => {
    const limit = slidingWindowCounter({ limit: 100, window: '1s' })
    const check = checkOf(limit, 3)
    await roomInWindow(1_000, 200)
    await ask(check)
    const second = await ask(check)
    expect(second).toMatchObject({ allowed: true, remaining: 94 })
    const refund = { check, units: 3, chargedAtUs: second.chargedAtUs }
    expect(await store.refund([refund])).toEqual([3])
    expect((await ask(checkOf(limit, 0), true)).remaining).toBe(97)
    await sleep(2_100)
    await ask(check)
    expect(await store.refund([refund])).toEqual([0])
  })
})

describe('a process whose clock is wrong', () => {
  it("a process whose clock is ten windows off gives back its own charges, and nobody else's", async () => {
    const limit = slidingWindowCounter({ limit: 10, window: '1s' })
    for (const aheadMs of [10_000, -10_000, 7_000]) {
      subjects++
      const ahead: Clock = {
        nowUs: () => systemClock.nowUs() + aheadMs * 1_000,
        unixMs: () => systemClock.unixMs() + aheadMs,
      }
      const world = { clock: ahead, timers: systemTimers, random: Math.random }
      const options = { deadlineMs: 10_000, denyCache: false, onStoreFailure: 'throw' as const, processes: 1 }
      const skewed = redisStoreIn(world, new Redis(redis.port, { lazyConnect: true }), options)
      await skewed.ready()
      await roomInWindow(1_000, 300)
      await ask(checkOf(limit, 1))
      const question = { alternatives: [[checkOf(limit, 4)]], shadow: [] }
      const first = (await askStore(skewed, question)).verdicts[0]?.[0] as Verdict
      const chargedAtMs = (first.chargedAtUs as number) / 1_000
      expect(Math.abs(chargedAtMs - (await serverMs()))).toBeLessThan(1_000)
      const second = (await askStore(skewed, { ...question, alternatives: [[checkOf(limit, 2)]] }))
        .verdicts[0]?.[0]
      expect(
        await skewed.refund([{ check: checkOf(limit), units: 2, chargedAtUs: second?.chargedAtUs ?? null }]),
      ).toEqual([2])
      expect((await ask(checkOf(limit, 0), true)).remaining).toBe(5)
      await skewed.close()
    }
  })
})

describe('the stored forms', () => {
  const limit = slidingWindowCounter({ limit: 4_000_000_000, window: '1h' })

  it('units before and now and the last digit of the window are one number, and it ends with the next window', async () => {
    const window = await roomInWindow(3_600_000, 2_000)
    await ask(checkOf(limit, 5))
    const key = keyOf(checkOf(limit))
    expect(await client.get(key)).toBe(`5${window % 10}`)
    expect(await client.pexpiretime(key)).toBe((window + 2) * 3_600_000)
    // As if it were the window before: its units fade.
    await client.set(key, `3${(window + 9) % 10}`, 'PXAT', (window + 1) * 3_600_000)
    await ask(checkOf(limit, 5))
    expect(await client.get(key)).toBe(`30000005${window % 10}`)
    expect(await client.pexpiretime(key)).toBe((window + 2) * 3_600_000)
  })

  it('what a number cannot say is a text: checks, peeks, refunds and settling cross the line both ways', async () => {
    const window = await roomInWindow(3_600_000, 2_000)
    const key = keyOf(checkOf(limit))
    const text = (units: number) => `0:${units}:${window * 3_600_000}:0`
    const first = await ask(checkOf(limit, MOST_IN_NUMBER))
    expect(await client.get(key)).toBe(`${MOST_IN_NUMBER}${window % 10}`)
    const second = await ask(checkOf(limit))
    expect(second.remaining).toBe(limit.limit - MOST_IN_NUMBER - 1)
    expect(await client.get(key)).toBe(text(MOST_IN_NUMBER + 1))
    expect(await client.pexpiretime(key)).toBe((window + 2) * 3_600_000)
    expect((await ask(checkOf(limit, 0), true)).remaining).toBe(second.remaining)
    const back = (units: number, chargedAtUs: number | null) =>
      store.refund([{ check: checkOf(limit), units, chargedAtUs }])
    expect(await back(2, second.chargedAtUs)).toEqual([2])
    expect(await client.get(key)).toBe(`${MOST_IN_NUMBER - 1}${window % 10}`)
    // Settling above the estimate.
    expect(await back(-5_000_000, null)).toEqual([0])
    expect(await client.get(key)).toBe(text(MOST_IN_NUMBER - 1 + 5_000_000))
    expect(await back(MOST_IN_NUMBER, first.chargedAtUs)).toEqual([MOST_IN_NUMBER])
    expect(await client.get(key)).toBe(`4999999${window % 10}`)
  })

  it('a reset is remembered as a text until nothing from before it can be given back', async () => {
    const short = slidingWindowCounter({ limit: 10, window: '1s' })
    const check = checkOf(short, 4)
    await roomInWindow(1_000, 400)
    const before = await ask(check)
    await sleep(2)
    await store.reset([check])
    expect(await client.get(keyOf(check))).toMatch(/^0:0:0:\d{13}$/)
    expect(await store.refund([{ check, units: 4, chargedAtUs: before.chargedAtUs }])).toEqual([0])
    await sleep(2)
    expect(await ask(check)).toMatchObject({ allowed: true, remaining: 6 })
    expect(await client.get(keyOf(check))).toMatch(/^0:4:\d{13}:\d{13}$/)
    expect(await store.refund([{ check, units: 4, chargedAtUs: before.chargedAtUs }])).toEqual([0])
    await sleep(2_050)
    await ask(check)
    expect(await client.get(keyOf(check))).toMatch(/^\d{2,9}$/)
  })

  it.each([
    ['is gone', (key: string) => client.persist(key)],
    ['is an hour too long', (key: string) => client.pexpire(key, 3_605_000)],
  ])(
    'a time to live that %s counts no more than a stepped clock, and the next charge puts it right',
    async (_, spoil) => {
      const short = slidingWindowCounter({ limit: 5, window: '2s' })
      const check = checkOf(short)
      await roomInWindow(2_000, 500)
      for (let units = 0; units < 3; units++) await ask(check)
      await spoil(keyOf(check))
      const verdict = await ask(check)
      expect(verdict.allowed).toBe(true)
      expect(verdict.remaining).toBeLessThanOrEqual(4)
      const ttlMs = await client.pttl(keyOf(check))
      expect(ttlMs).toBeGreaterThan(0)
      expect(ttlMs).toBeLessThanOrEqual(4_000)
    },
  )
})

describe('the scripts that a process leaves on a server', () => {
  it('a thousand reloads with other numbers leave a bounded number of scripts, and every request is decided', async () => {
    const other = await startRedis()
    const own = new Redis(other.port)
    try {
      const config = (limit: number) =>
        defineConfig({
          policies: {
            api: [
              { algorithm: 'sliding-window-counter', limit, window: '1h' },
              { algorithm: 'token-bucket', capacity: limit, refillPerSecond: 1 },
            ],
          },
          global: { policy: 'api' },
          levels: 'all',
        })
      const redisStore = directRedisStore(own, { deadlineMs: 10_000 })
      const limiter = createLimiter({ store: redisStore, config: config(1_000) })
      for (let reload = 1; reload <= 1_000; reload++) {
        await limiter.reload(config(1_000 + reload))
        const decision = await limiter.request({ method: 'GET', path: '/', subject: `user:${reload}` })
        expect(decision).toMatchObject({ allowed: true, source: 'redis' })
      }
      const [, scripts] = /number_of_cached_scripts:(\d+)/.exec(await own.info('memory')) ?? []
      expect(Number(scripts)).toBeGreaterThan(32)
      expect(Number(scripts)).toBeLessThanOrEqual(300)
      await limiter.close()
    } finally {
      own.disconnect()
      await other.stop()
    }
  })
})
