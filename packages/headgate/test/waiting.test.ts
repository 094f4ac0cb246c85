/** `wait`: requests that are held until there is room, as one decision each. The contract of adapters has the rest. */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { defineConfig } from '../src/config.ts'
import { rateLimit } from '../src/express.ts'
import {
  ban,
  concurrency,
  createLimiter,
  type Decision,
  type HeadgateEvent,
  slidingWindowLog,
} from '../src/index.ts'
import { createStatistics, prometheus } from '../src/metrics.ts'
import { redisStore } from '../src/redis.ts'
import { memoryStore } from '../src/store/memory/memory-store.ts'
import type { Store } from '../src/store/store.ts'
import { type RedisProcess, startRedis } from './support/redis-process.ts'

let server: RedisProcess
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

let stores = 0
const STORES: Record<string, () => Store> = {
  memory: () => memoryStore(),
  redis() {
    const client = new Redis({ port: server.port, lazyConnect: true })
    closing.push(() => client.disconnect())
    return redisStore(client, { deadlineMs: 5_000, prefix: `wait${++stores}` })
  },
}
const wait = { atMostMs: 30_000, queue: 100 }
const api = { policy: 'api' } as const
const WINDOW = '80ms'

describe.each(Object.entries(STORES))('requests that wait, %s', (_name, storeOf) => {
  it('pass in the order in which they came, each counted and timed as one decision', async () => {
    const statistics = createStatistics()
    const events: HeadgateEvent[] = []
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 1, window: WINDOW }) },
      store: storeOf(),
      statistics,
      onEvent: event => void events.push(event),
    })
    closing.unshift(() => limiter.close())
    const order: number[] = []
    const decisions = await Promise.all(
      Array.from({ length: 5 }, async (_, number) => {
        const decision = await limiter.checkNow('user:1', api, { wait })
        order.push(number)
        return decision
      }),
    )
    expect(order).toEqual([0, 1, 2, 3, 4])
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true, true])
    expect(decisions.map(({ waitedMs }) => waitedMs > 0)).toEqual([false, true, true, true, true])
    expect(events.map(({ type }) => type)).toEqual(Array(5).fill('decision'))
    const [tally] = statistics.read().decisions
    expect([tally?.allowed, tally?.denied]).toEqual([5, 0])
    expect(tally?.waited?.counts.reduce((sum, count) => sum + count)).toBe(4)
    const text = prometheus({ statistics }).text()
    expect(text).toMatch(/^rate_limit_latency_seconds_count\{source="\w+",waited="yes"\} 4$/m)
    expect(text).toMatch(/^rate_limit_latency_seconds_count\{source="\w+"\} \d+$/m)
  })

  it('are charged once by a limit in shadow, however often they ask', async () => {
    const config = defineConfig({
      policies: {
        api: slidingWindowLog({ limit: 1, window: WINDOW }),
        trial: slidingWindowLog({ limit: 100, window: '1h' }),
      },
      levels: 'all',
      default: { policy: 'api' },
      rules: [
        { name: 'trial', match: { path: '/a' }, policy: 'trial', mode: 'shadow' },
        { name: 'slow', match: { subject: 'user' }, policy: 'api', wait: { atMost: '30s' } },
      ],
    })
    const limiter = createLimiter({ config, store: storeOf() })
    closing.unshift(() => limiter.close())
    const facts = { subject: 'user:1', method: 'GET', path: '/a' }
    const decisions = await Promise.all([1, 2, 3].map(() => limiter.requestNow(facts, {})))
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true])
    expect(limiter.counts().shadow).toEqual({ trial: { wouldAllow: 3, wouldDeny: 0 } })
    await expect.poll(async () => (await limiter.peek('user:1', { policy: 'trial' })).remaining).toBe(97)
  })

  it('are denied when the limiter closes, whether they have asked or not', async () => {
    const events: HeadgateEvent[] = []
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 1, window: '20s' }) },
      store: storeOf(),
      onEvent: event => void events.push(event),
    })
    expect((await limiter.checkNow('user:1', api, { wait })).allowed).toBe(true)
    const held: (Decision | Promise<Decision>)[] = []
    for (let number = 0; number < 3; number++) held.push(limiter.checkNow('user:1', api, { wait }))
    const called = limiter.acquire('user:1', api)
    await expect.poll(() => limiter.peek('user:1', api).then(({ allowed }) => allowed)).toBe(false)
    await limiter.close()
    for (const decision of [...(await Promise.all(held)), await called]) {
      expect(decision.allowed).toBe(false)
      expect(decision.reason).toBe('limit-exceeded')
      expect(decision.retryAfterMs).toBeGreaterThan(0)
    }
    expect(events.map(({ type }) => type)).toEqual(['decision', ...Array(4).fill('denial')])
  })

  it('are denied when the client leaves, and make room for others', async () => {
    const limiter = createLimiter({ policies: { api: concurrency({ limit: 1 }) }, store: storeOf() })
    closing.unshift(() => limiter.close())
    const first = await limiter.checkNow('user:1', api, { wait })
    const leaving = new AbortController()
    const left = limiter.checkNow('user:1', api, { wait, signal: leaving.signal })
    const stays = limiter.checkNow('user:1', api, { wait })
    leaving.abort()
    expect((await left).allowed).toBe(false)
    await first.release()
    expect((await stays).allowed).toBe(true)
  })

  it('keep nobody else waiting: another caller, and one whom a longer wait would not help', async () => {
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 1, window: '20s' }) },
      store: storeOf(),
    })
    closing.unshift(() => limiter.close())
    await limiter.checkNow('user:1', api, { wait })
    const held = limiter.checkNow('user:1', api, { wait })
    expect((await limiter.checkNow('user:2', api, { wait })).allowed).toBe(true)
    const short = { wait: { atMostMs: 100, queue: 100 } }
    expect((await limiter.checkNow('user:2', api, short)).allowed).toBe(false)
    expect((await limiter.checkNow('user:2', { ...api, cost: 2 }, { wait })).reason).toBe('exceeds-capacity')
    limiter.stopWaiting()
    expect((await held).allowed).toBe(false)
    expect((await limiter.checkNow('user:1', api, { wait })).allowed).toBe(false)
  })
})

describe.each(Object.entries(STORES))('beyond the queue, %s', (_name, storeOf) => {
  const patient = { atMostMs: 7_200_000, queue: 1 }

  /** Somebody waits for all of a limit, of which a unit is left. */
  async function withOneInLine() {
    const events: HeadgateEvent[] = []
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 4, window: '1h' }) },
      store: storeOf(),
      onEvent: event => void events.push(event),
    })
    closing.unshift(() => limiter.close())
    await limiter.check('user:1', { ...api, cost: 3 })
    void limiter.checkNow('user:1', { ...api, cost: 4 }, { wait: patient })
    // Answered behind the first, which waits by then.
    expect((await limiter.checkNow('user:1', { ...api, cost: 4 }, { wait: patient })).allowed).toBe(false)
    events.splice(0)
    return { limiter, events }
  }

  it('a request is denied at once, even if there is room for it: those who wait come first', async () => {
    const { limiter, events } = await withOneInLine()
    const denied = await limiter.checkNow('user:1', api, { wait: patient })
    expect(denied).toMatchObject({ allowed: false, reason: 'limit-exceeded', waitedMs: 0 })
    expect(denied.retryAfterMs).toBeGreaterThan(0)
    expect((await limiter.peek('user:1', api)).remaining).toBe(1)
    expect(events.map(({ type }) => type)).toEqual(['denial'])
  })

  it('a request is told when there is room for what it asks', async () => {
    const { limiter } = await withOneInLine()
    for (const cost of [2, 4]) {
      const { allowed, retryAfterMs } = await limiter.checkNow('user:1', { ...api, cost }, { wait: patient })
      expect(allowed).toBe(false)
      expect(retryAfterMs).toBeGreaterThan(3_000_000)
      expect(retryAfterMs).toBeLessThanOrEqual(3_600_000)
    }
    const never = await limiter.checkNow('user:1', { ...api, cost: 5 }, { wait: patient })
    expect([never.reason, never.retryAfterMs]).toEqual(['exceeds-capacity', null])
  })

  it('a request whose time is up before its turn does not pass those before it', async () => {
    const { limiter } = await withOneInLine()
    const impatient = { wait: { atMostMs: 30, queue: 100 } }
    const late = await limiter.checkNow('user:1', api, impatient)
    expect(late.allowed).toBe(false)
    expect(late.waitedMs).toBeGreaterThanOrEqual(30)
    expect((await limiter.peek('user:1', api)).remaining).toBe(1)
  })
})

it('a request beyond the queue is no strike of a ban, and asks the store nothing if one that asked the same waits', async () => {
  const store = memoryStore()
  const { decide } = store
  let asked = 0
  store.decide = check => {
    asked++
    return decide.call(store, check)
  }
  const limiter = createLimiter({
    store,
    policies: {
      api: {
        limits: slidingWindowLog({ limit: 1, window: '1h' }),
        ban: ban({ after: 1, within: '1h', for: '1h' }),
      },
    },
  })
  const patient = { wait: { atMostMs: 7_200_000, queue: 1 } }
  await limiter.checkNow('user:1', api, patient)
  const waits = limiter.checkNow('user:1', api, patient)
  const before = asked
  for (let time = 0; time < 100; time++) {
    const { allowed, retryAfterMs } = await limiter.checkNow('user:1', api, patient)
    expect(allowed).toBe(false)
    expect(retryAfterMs).toBeGreaterThan(3_000_000)
  }
  expect(asked).toBe(before)
  expect((await limiter.peek('user:1', api)).reason).toBe('limit-exceeded')
  await limiter.close()
  expect((await waits).allowed).toBe(false)
})

it('a request that waits is no strike of a ban, one that is denied at once is, and nobody waits for the end of a ban', async () => {
  const limiter = createLimiter({
    policies: {
      api: {
        limits: slidingWindowLog({ limit: 1, window: WINDOW }),
        ban: ban({ after: 2, within: '1h', for: '20s' }),
      },
    },
  })
  const all = await Promise.all([1, 2, 3, 4].map(() => limiter.checkNow('user:1', api, { wait })))
  expect(all.map(({ allowed }) => allowed)).toEqual([true, true, true, true])
  const short = { wait: { atMostMs: 1, queue: 1 } }
  for (let time = 0; time < 3; time++) await limiter.checkNow('user:1', api, short)
  expect((await limiter.checkNow('user:1', api, { wait })).reason).toBe('banned')
  await limiter.close()
})

it('no more than 10,000 requests wait in a process, whoever they come from', async () => {
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '20s' }) } })
  const held: (Decision | Promise<Decision>)[] = []
  for (let caller = 0; caller < 100; caller++) {
    await limiter.check(`user:${caller}`, api)
    for (let time = 0; time < 100; time++) held.push(limiter.checkNow(`user:${caller}`, api, { wait }))
    expect((await limiter.checkNow(`user:${caller}`, api, { wait })).allowed).toBe(false)
  }
  await limiter.check('user:other', api)
  expect((await limiter.checkNow('user:other', api, { wait })).allowed).toBe(false)
  await limiter.close()
  expect((await Promise.all(held)).filter(({ allowed }) => allowed)).toEqual([])
})

it('a rule that lets requests wait is explained', () => {
  const config = defineConfig({
    policies: { api: slidingWindowLog({ limit: 1, window: '1s' }) },
    default: { policy: 'api' },
    rules: [{ name: 'slow', match: { path: '/a' }, policy: 'api', wait: { atMost: '500ms', queue: 7 } }],
  })
  const { text, levels } = createLimiter({ config }).explain({ subject: 'user:1', path: '/a' })
  expect(levels[0]?.wait).toBe('waits for room for at most 500ms, 7 of a caller at once')
  expect(text).toContain('\n  waits for room for at most 500ms, 7 of a caller at once')
})

it.each([
  ['wait', '500ms', 'wait'],
  ['wait', null, 'wait'],
  ['atMost', { queue: 5 }, 'wait.atMost'],
  ['atMost', { atMost: '2m' }, 'wait.atMost'],
  ['atMost', { atMost: 'soon' }, 'wait.atMost'],
  ['queue', { atMost: '1s', queue: 0 }, 'wait.queue'],
  ['queue', { atMost: '1s', queue: 1.5 }, 'wait.queue'],
  ['queu', { atMost: '1s', queu: 5 }, 'wait.queu'],
])('a wait with a bad %s is rejected by name: %j', (_what, given, field) => {
  const options = { limit: 1, window: '1s', wait: given } as object as Parameters<typeof rateLimit>[0]
  expect(() => rateLimit(options)).toThrow(expect.objectContaining({ field }))
})
