/**
 * A server forgets its scripts when it restarts, fails over or is told to. Nobody may notice: no call fails, and
 * none is charged twice because it was sent again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, expect, it } from 'vitest'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import type { Check } from '../../src/check/check.ts'
import { type Answer, askStore } from '../../src/store/ask-store.ts'
import type { RedisStoreOptions } from '../../src/store/redis/redis-options.ts'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { redisKey } from '../../src/subject/key.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { openConnection, sendCommand } from '../support/resp.ts'
import { readKeyspace } from './keyspace.ts'

const IN_FLIGHT = 8
// Whether a loaded machine answers within 30 ms is not the question here.
const DEADLINE_MS = 10_000

const toStop: (() => unknown)[] = []

afterEach(async () => {
  for (const stop of toStop.splice(0).reverse()) await stop()
})

const limit = slidingWindowCounter({ limit: 2 ** 32 - 1, window: '366d' })

function checkFor(subject: string, cost: number): Check {
  return { subject, scope: 'global', name: `proof.${limit.id}`, limit, cost }
}

const clients = {
  ioredis: (redis: RedisProcess) => {
    const client = new Redis(redis.port)
    client.on('error', () => {})
    toStop.push(() => client.disconnect())
    return client
  },
  'node-redis': (redis: RedisProcess) => createClient({ url: redis.url }),
}

async function openStores(
  redis: RedisProcess,
  options: RedisStoreOptions,
): Promise<{ subject: string; store: RedisStore }[]> {
  const stores = Object.entries(clients).map(([name, connect]) => {
    const store = directRedisStore(connect(redis), { deadlineMs: DEADLINE_MS, ...options })
    toStop.push(() => store.close())
    return { subject: `client:${name}`, store }
  })
  await Promise.all(stores.map(({ store }) => store.ready()))
  return stores
}

interface Beat {
  readonly command: 'SCRIPT' | 'FUNCTION'
  readonly everyMs: number
  readonly forMs: number
  readonly fewest: number
}

/** Flushes at a fixed interval, and longer if a busy machine cannot keep it. Returns how many times. */
async function flush(port: number, { command, everyMs, forMs, fewest }: Beat): Promise<number> {
  const connection = await openConnection(port)
  const startedAt = performance.now()
  let flushes = 0
  while (performance.now() - startedAt < forMs || flushes < fewest) {
    expect(await connection.send(command, 'FLUSH', 'SYNC')).toBe('OK')
    flushes++
    await sleep(Math.max(0, startedAt + flushes * everyMs - performance.now()))
  }
  connection.close()
  return flushes
}

interface Load {
  acknowledged: number
  readonly errors: unknown[]
}

async function keepAsking(store: RedisStore, subject: string, running: () => boolean): Promise<Load> {
  const load: Load = { acknowledged: 0, errors: [] }
  async function ask(cost: number): Promise<void> {
    while (running()) {
      try {
        const answer = await askStore(store, { alternatives: [[checkFor(subject, cost)]], shadow: [] })
        if (answer.charged === 0) load.acknowledged += cost
      } catch (error) {
        load.errors.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, (_, index) => ask(1 + (index % 3))))
  return load
}

async function countOnServer(port: number, subject: string): Promise<number> {
  const { scope, name } = checkFor(subject, 1)
  const key = redisKey({ prefix: 'ratelimit', tenant: '', subject, scope, name })
  // The last digit is the window's.
  return Math.floor(Number(await sendCommand(port, 'GET', key)) / 10)
}

it.each([
  { use: 'scripts', command: 'SCRIPT', everyMs: 5, forMs: 3_000, fewest: 400 },
  // A library must be loaded and then called: another flush in between, beside a busy neighbour, would be an error.
  { use: 'functions', command: 'FUNCTION', everyMs: 400, forMs: 4_000, fewest: 10 },
] as const)(
  'a server that forgets its $use every $everyMs ms costs no error and no unit',
  async ({ use, ...beat }) => {
    const redis = await startRedis()
    toStop.push(() => redis.stop())
    const stores = await openStores(redis, { use })
    let running = true
    const loads = stores.map(({ store, subject }) => keepAsking(store, subject, () => running))
    const flushes = await flush(redis.port, beat).finally(() => {
      running = false
    })
    for (const [index, { acknowledged, errors }] of (await Promise.all(loads)).entries()) {
      const { subject } = stores[index] as { subject: string }
      console.info(`${use}: ${flushes} flushes, ${subject} ${acknowledged} units acknowledged`)
      expect(errors).toEqual([])
      expect(acknowledged).toBeGreaterThan(beat.fewest)
      expect(await countOnServer(redis.port, subject)).toBe(acknowledged)
    }
    expect(flushes).toBeGreaterThanOrEqual(beat.fewest)
    const { keys, expires } = await readKeyspace(redis.port)
    expect({ keys, expires }).toEqual({ keys: stores.length, expires: stores.length })
  },
)

it('a server that comes back empty is asked on, by scripts and by functions', async () => {
  const first = await startRedis()
  toStop.push(() => first.stop())
  const stores = [
    ...(await openStores(first, { use: 'scripts' })),
    ...(await openStores(first, { use: 'functions', prefix: 'functions' })),
  ]
  const ask = async (store: RedisStore, subject: string): Promise<Answer> =>
    askStore(store, { alternatives: [[checkFor(subject, 1)]], shadow: [] })
  for (const { store, subject } of stores) expect((await ask(store, subject)).charged).toBe(0)
  first.kill('SIGKILL')
  await first.exited
  const second = await startRedis({ port: first.port })
  toStop.push(() => second.stop())
  for (const { store, subject } of stores) {
    // While it is down calls fail at once; none of them may be charged later.
    let answer = await ask(store, subject).catch(() => null)
    while (answer === null) {
      await sleep(20)
      answer = await ask(store, subject).catch(() => null)
    }
    expect(answer.charged).toBe(0)
    expect(answer.verdicts[0]?.[0]?.remaining).toBe(limit.limit - 1)
  }
})
