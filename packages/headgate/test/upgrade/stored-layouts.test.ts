/** State that the previous version left in Redis is read by this one with the same meaning. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Check } from '../../src/check/check.ts'
import { askStore, type Verdict } from '../../src/store/ask-store.ts'
import type { StoredOverrides } from '../../src/store/control-store.ts'
import { type RedisStore, redisStore } from '../../src/store/redis/redis-store.ts'
import { algorithmOf } from '../algorithms/driver.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'
import { previouslyStored, type StoredKey } from './previous.ts'

/** A test's clock stands still while the server's expiry continues. */
const GRACE_MS = 600_000
/** By which a key ends later under a test's clock if its end is part of its state. */
const TEST_SHIFT_MS = 4_398_046_511_104

let server: RedisProcess
let client: Redis
let nowUs = 0
const stores: RedisStore[] = []

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
beforeEach(() => client.flushall())
afterAll(async () => {
  await Promise.all(stores.map(store => store.close()))
  client?.disconnect()
  await server?.stop()
})

async function open(tenant = ''): Promise<RedisStore> {
  const store = directRedisStore(client, { tenant, deadlineMs: 5_000, testClockUs: () => nowUs })
  stores.push(store)
  await store.ready()
  return store
}

async function restore({ key, type, value, ttlMs, expiresAtMs }: StoredKey): Promise<void> {
  if (type === 'string') {
    await client.set(key, value as string, 'PXAT', expiresAtMs + TEST_SHIFT_MS)
    return
  }
  if (type === 'hash') await client.hset(key, value as Record<string, string>)
  else {
    const scored = value as readonly string[]
    for (let at = 0; at < scored.length; at += 2)
      await client.zadd(key, scored[at + 1] as string, scored[at] as string)
  }
  if (ttlMs >= 0) await client.pexpire(key, ttlMs + GRACE_MS)
}

async function peek(store: RedisStore, check: Check): Promise<Verdict> {
  const answer = await askStore(store, { alternatives: [[check]], shadow: [] }, true)
  return answer.verdicts[0]?.[0] as Verdict
}

describe.each(previouslyStored.states)('a $name', ({ tenant, check, stored, charges, answers, ...state }) => {
  it('a stored state is answered about as it was', async () => {
    await restore(stored)
    const store = await open(tenant)
    for (const { afterUs, cost, ...expected } of answers) {
      nowUs = state.nowUs + afterUs
      expect(await peek(store, { ...check, cost }), `${afterUs} µs later, cost ${cost}`).toMatchObject(
        expected,
      )
    }
  })

  it('a stored state admits what was left of it and no more', async () => {
    await restore(stored)
    const store = await open(tenant)
    nowUs = state.nowUs
    const left = answers[0]?.remaining ?? 0
    const answer = await askStore(store, { alternatives: [[{ ...check, cost: left }]], shadow: [] })
    expect(answer.charged).toBe(0)
    expect((await peek(store, check)).allowed).toBe(false)
    const ttlMs = await client.pttl(stored.key)
    expect(ttlMs).toBeGreaterThan(0)
    if (stored.type === 'string') return
    const keepUs = algorithmOf(check.limit).keepForUs(
      check.limit,
      algorithmOf(check.limit).empty(),
      state.nowUs,
    )
    // A log is kept for up to an eighth longer.
    expect(ttlMs).toBeLessThanOrEqual(Math.ceil((keepUs / 1000) * 1.125) + 1 + GRACE_MS)
  })

  it('a stored state gives back what was charged to it', async () => {
    await restore(stored)
    const store = await open(tenant)
    nowUs = state.nowUs
    const before = (await peek(store, check)).remaining
    const { units, chargedAtUs } = charges.at(-1) as (typeof charges)[number]
    const [given] = await store.refund([{ check, units, chargedAtUs }])
    expect(given).toBe(units)
    expect((await peek(store, check)).remaining).toBe(before + units)
  })

  it('a stored state is forgotten by a reset', async () => {
    await restore(stored)
    const store = await open(tenant)
    nowUs = state.nowUs
    await store.reset([check])
    expect(await peek(store, check)).toMatchObject({ allowed: true, remaining: check.limit.limit })
  })
})

describe('settings of operators', () => {
  it('the settings operators had made are in force as they were', async () => {
    const { stored, reading, ...operators } = previouslyStored.operators
    for (const key of stored) await restore(key)
    nowUs = operators.nowUs
    const store = await open()
    const { control, overrides } = await store.control.read()
    expect(control).toEqual(reading.control)
    const { entries, nowMs } = overrides as StoredOverrides
    const read = [...entries].map(([target, entry]) => ({
      target,
      ...entry,
      expiresInMs: entry.expiresAtMs - nowMs,
    }))
    expect(read).toEqual(reading.overrides)
    expect(await store.control.removeOverride('rule login')).toBe(true)
    const left = (await store.control.read()).overrides as StoredOverrides
    expect([...left.entries.keys()]).toEqual(['subject user:42'])
  })
})

describe('the fleet', () => {
  it('the fleet counts the processes of the previous version', async () => {
    const { stored, live, ...fleet } = previouslyStored.fleet
    await restore(stored)
    nowUs = fleet.nowUs
    const store = redisStore(client, { testClockUs: () => nowUs })
    stores.push(store)
    await waitUntil('all are counted', async () => store.health().liveProcesses === live + 1)
    expect(store.health().lostWrites).toBe(0)
  })
})
