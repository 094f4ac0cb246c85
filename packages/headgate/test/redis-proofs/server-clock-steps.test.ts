/**
 * The server's clock is stepped under a running store. A step back must not lock anybody out: no unit is denied for
 * longer than two windows, or than a bucket takes to fill, and the promised wait is kept. A step forward grants at
 * most the limit once more.
 */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check } from '../../src/check/check.ts'
import { askStore, type Verdict } from '../../src/store/ask-store.ts'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { redisKey } from '../../src/subject/key.ts'
import { type ShiftedRedis, startShiftedRedis } from '../support/clock-shim.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { openConnection, type RespConnection } from '../support/resp.ts'
import { readKeyspace } from './keyspace.ts'

const SECOND_US = 1_000_000
const MINUTE_US = 60 * SECOND_US
const HOUR_US = 60 * MINUTE_US
const UNITS = 10
/** More than a call takes on a busy machine, less than any window. */
const MARGIN_US = 500_000
const STEPS_US = [MINUTE_US, HOUR_US]

let redis: ShiftedRedis
let client: Redis
let store: RedisStore
let connection: RespConnection
let offsetUs = 0
let subjects = 0

beforeAll(async () => {
  redis = await startShiftedRedis()
  client = new Redis(redis.port)
  store = directRedisStore(client, { deadlineMs: 10_000 })
  await store.ready()
  connection = await openConnection(redis.port)
})

afterAll(async () => {
  connection?.close()
  await store?.close()
  client?.disconnect()
  await redis?.stop()
})

async function serverUs(): Promise<number> {
  const [seconds, micros] = (await connection.send('TIME')) as string[]
  return Number(seconds) * SECOND_US + Number(micros)
}

function step(byUs: number): void {
  offsetUs += byUs
  redis.shiftClock(offsetUs)
}

/** Moves the server's clock to a moment. */
async function stepTo(atUs: number): Promise<void> {
  step(atUs - (await serverUs()))
}

// Windows and fill times shorter than a step, as long as it, slightly and much longer.
const LENGTHS = ['20s', '60s', '90s', '2h'] as const
const SECONDS = { '20s': 20, '60s': 60, '90s': 90, '2h': 7200 } as const

/** The limits under test, and how long a unit may be denied at most. */
const LIMITS: readonly { readonly title: string; readonly limit: Limit; readonly longestUs: number }[] =
  LENGTHS.flatMap(window => {
    const windowUs = SECONDS[window] * SECOND_US
    return [
      { limit: slidingWindowLog({ limit: UNITS, window }), longestUs: 2 * windowUs },
      { limit: slidingWindowCounter({ limit: UNITS, window }), longestUs: 2 * windowUs },
      { limit: slidingWindowCounter({ limit: UNITS, window, buckets: 4 }), longestUs: 2 * windowUs },
      {
        limit: tokenBucket({ capacity: UNITS, refillPerSecond: UNITS / SECONDS[window], name: window }),
        longestUs: windowUs,
      },
    ].map(row => ({ title: row.limit.id, ...row }))
  })

function newCheck(limit: Limit): Check {
  return { subject: `user:${subjects++}`, scope: 'global', name: `proof.${limit.id}`, limit, cost: 1 }
}

async function ask(check: Check): Promise<Verdict> {
  const answer = await askStore(store, { alternatives: [[check]], shadow: [] })
  return answer.verdicts[0]?.[0] as Verdict
}

/** Asks until a unit is denied, and returns how many were not. */
async function askUntilDenied(check: Check): Promise<{ admitted: number; denied: Verdict }> {
  for (let admitted = 0; ; admitted++) {
    const verdict = await ask(check)
    if (!verdict.allowed) return { admitted, denied: verdict }
    if (admitted > 10 * UNITS) throw new Error(`${check.name} does not deny any more`)
  }
}

/** Moves to the moment the denial promises: just before it nothing may be admitted, at it a unit must be. */
async function expectPromiseKept(check: Check): Promise<void> {
  const beforeUs = await serverUs()
  const { allowed, retryAfterUs } = await ask(check)
  const afterUs = await serverUs()
  expect(allowed).toBe(false)
  if (retryAfterUs > 2 * MARGIN_US) {
    await stepTo(beforeUs + retryAfterUs - MARGIN_US)
    const early = await ask(check)
    if ((await serverUs()) < beforeUs + retryAfterUs)
      expect(early.allowed, 'before the promised time').toBe(false)
  }
  await stepTo(afterUs + retryAfterUs)
  expect((await ask(check)).allowed, 'at the promised time').toBe(true)
}

async function remainingTtlUs({ subject, scope, name }: Check): Promise<number> {
  const key = redisKey({ prefix: 'ratelimit', tenant: '', subject, scope, name })
  return Number(await connection.send('PTTL', key)) * 1000
}

async function expectNoImmortalKeys(): Promise<void> {
  const { keys, expires } = await readKeyspace(redis.port)
  expect(keys).toBe(expires)
}

describe.each(LIMITS)('$title', ({ limit, longestUs }) => {
  it.each(STEPS_US)('no unit is denied for longer than promised after a step back of %d µs', async stepUs => {
    for (const used of [1, UNITS / 2, UNITS]) {
      const check = newCheck(limit)
      for (let unit = 0; unit < used; unit++) expect((await ask(check)).allowed).toBe(true)
      step(-stepUs)
      const { denied } = await askUntilDenied(check)
      expect(denied.retryAfterUs).toBeLessThanOrEqual(longestUs)
      expect(denied.retryAfterUs).toBeGreaterThan(0)
      await expectPromiseKept(check)
      const ttlUs = await remainingTtlUs(check)
      // Written again, the key lives for its time from now on and for what the clock has to catch up.
      expect(ttlUs).toBeGreaterThan(0)
      expect(ttlUs).toBeLessThanOrEqual(2 * longestUs + 2 * SECOND_US)
      await expectNoImmortalKeys()
    }
  })

  it.each(STEPS_US)(
    'a denial tells the wait with the catching up after a step back of %d µs',
    async stepUs => {
      const check = newCheck(limit)
      const { denied } = await askUntilDenied(check)
      step(-stepUs)
      const { admitted, denied: after } = await askUntilDenied(check)
      // Either the state is kept, and the wait is longer by the step; or it is forgotten, and the whole limit is
      // available.
      if (admitted === 0) {
        expect(after.retryAfterUs).toBeGreaterThan(denied.retryAfterUs + stepUs - 5 * SECOND_US)
        expect(after.retryAfterUs).toBeLessThanOrEqual(denied.retryAfterUs + stepUs)
      } else {
        expect(admitted).toBeLessThanOrEqual(UNITS)
        expect(denied.retryAfterUs + stepUs).toBeGreaterThan(longestUs / 2)
      }
      await expectNoImmortalKeys()
    },
  )

  it.each(STEPS_US)('a step forward of %d µs gives at most the limit once more', async stepUs => {
    const check = newCheck(limit)
    // A window that ends by itself in the meantime would add its units.
    expect((await askUntilDenied(check)).admitted).toBeGreaterThanOrEqual(UNITS)
    step(stepUs)
    const { admitted, denied } = await askUntilDenied(check)
    expect(admitted).toBeLessThanOrEqual(UNITS)
    expect(denied.retryAfterUs).toBeLessThanOrEqual(longestUs)
    await expectNoImmortalKeys()
    step(-stepUs)
    const back = await askUntilDenied(check)
    expect(back.admitted).toBeLessThanOrEqual(UNITS)
    expect(back.denied.retryAfterUs).toBeLessThanOrEqual(longestUs)
    await expectPromiseKept(check)
    await expectNoImmortalKeys()
  })

  it('no unit is denied for longer than promised however often the clock is stepped', async () => {
    const check = newCheck(limit)
    // Back and forth by amounts around the length of the limit, where states are kept or forgotten.
    for (const share of [-0.5, -0.5, 0.3, -0.99, -1.01, 1, -0.25, -0.25, -0.25, -2, 0.75, -0.1, 5, -5]) {
      const { denied } = await askUntilDenied(check)
      expect(denied.retryAfterUs).toBeLessThanOrEqual(longestUs)
      step(Math.round((share * longestUs) / 2))
      await expectNoImmortalKeys()
    }
    await askUntilDenied(check)
    await expectPromiseKept(check)
  })
})
