/** One stream of typed events, delivered in the listener's context, and free without a listener. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { createLimiter } from '../src/limiter/limiter.js'
import type { HeadgateEvent } from '../src/observe/event.js'
import { redisStore } from '../src/store/redis/redis-store.js'
import { startRedis } from './support/redis-process.ts'
import { configOf, perMinute, ruleOf } from './support/rule-config.ts'
import { waitUntil } from './support/wait-until.ts'

const policies = { api: slidingWindowLog({ limit: 2, window: '1m' }) }
const API = { policy: 'api' } as const
const cleanUps: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

function keepEvents() {
  const events: HeadgateEvent[] = []
  return { events, onEvent: (event: HeadgateEvent) => void events.push(event) }
}

describe('a limiter', () => {
  it('a limiter emits every decision once, as a decision or a denial, and names no subject', async () => {
    const { events, onEvent } = keepEvents()
    const limiter = createLimiter({ policies, onEvent })
    await limiter.check('user:canary', API)
    limiter.checkNow('user:canary', { ...API, cost: 1 })
    await limiter.check('user:canary', API)
    limiter.fallback({ onStoreFailure: 'closed' })
    await limiter.peek('user:canary', API)
    const common = { policy: 'api', tier: null, rule: null, cost: 1, source: 'memory', leased: false }
    expect(events).toEqual([
      { ...common, type: 'decision', allowed: true, remaining: 1, retryAfterMs: 0, reason: 'within-limit' },
      { ...common, type: 'decision', allowed: true, remaining: 0, retryAfterMs: 0, reason: 'within-limit' },
      {
        ...common,
        type: 'denial',
        allowed: false,
        remaining: 0,
        retryAfterMs: expect.any(Number),
        reason: 'limit-exceeded',
      },
      expect.objectContaining({ type: 'denial', source: 'closed', reason: 'store-unavailable' }),
    ])
    expect(JSON.stringify(events)).not.toContain('canary')
  })

  it('a limiter emits in the async context it was made in, never in that of a request', async () => {
    const server = await startRedis()
    cleanUps.push(() => server.stop())
    const context = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    const onEvent = (): void => void seen.push(context.getStore())
    const limiter = context.run('the app', () => {
      // A missed deadline would emit an event too.
      const client = new Redis({ port: server.port, lazyConnect: true })
      const store = redisStore(client, { onEvent, deadlineMs: 5_000 })
      return createLimiter({ store, policies, onEvent })
    })
    cleanUps.push(() => limiter.close())
    const ask = (id: number) => context.run(`request ${id}`, () => limiter.check(`user:${id}`, API))
    await Promise.all([1, 2, 3, 4, 5].map(ask))
    expect(seen).toHaveLength(5)
    expect(new Set(seen)).toEqual(new Set(['the app']))
  })

  it('a limiter decides while a listener throws, and rejects a listener that is not a function', async () => {
    const onEvent = () => {
      throw new Error('mine')
    }
    const limiter = createLimiter({ policies, onEvent })
    expect(await limiter.check('user:1', API)).toMatchObject({ allowed: true })
    expect(await limiter.check('user:1', API)).toMatchObject({ allowed: true })
    expect(() => createLimiter({ policies, onEvent: 'all' as never })).toThrow(
      /^onEvent: expected a function; got "all"$/,
    )
  })
})

describe('a limiter', () => {
  it('a limiter emits decisions with their rule, reloads, control and overrides', async () => {
    const { events, onEvent } = keepEvents()
    const config = configOf({
      policies: { api: perMinute(2) },
      rules: [ruleOf({ name: 'all', charge: { policy: 'api' }, match: {} })],
    })
    const ruled = createLimiter({ config, onEvent })
    await ruled.ready()
    expect(events).toEqual([])
    await ruled.request({ subject: 'user:1', path: '/' })
    await ruled.control.set({ multiplier: 0.5 })
    await ruled.overrides.set({
      subject: 'user:vip',
      limits: { 'log-1m': 5 },
      ttl: '1h',
      by: 'ops',
      reason: 'test',
    })
    await ruled.overrides.read()
    await ruled.overrides.remove({ subject: 'user:vip' })
    await ruled.reload(config)
    await ruled.close()
    expect(events).toMatchObject([
      { type: 'decision', rule: 'all', policy: 'api' },
      { type: 'control', control: { enabled: true, multiplier: 0.5 } },
      { type: 'override', stored: 1 },
      { type: 'override', stored: 0 },
      { type: 'reload', rules: 1 },
    ])
  })
})

it('a store emits the leases it takes', async () => {
  const server = await startRedis()
  cleanUps.push(() => server.stop())
  const { events, onEvent } = keepEvents()
  const store = redisStore(new Redis({ port: server.port, lazyConnect: true }), {
    onEvent,
    deadlineMs: 5_000,
  })
  const hot = { limits: [slidingWindowLog({ limit: 10_000, window: '1m' })], lease: 'auto' } as const
  const limiter = createLimiter({ store, policies: { hot } })
  cleanUps.push(() => limiter.close())
  await store.ready()
  await waitUntil('a lease', async () => {
    await limiter.check('user:1', { policy: 'hot' })
    return events.length > 0
  })
  expect(events[0]).toEqual({
    type: 'lease',
    limit: expect.stringContaining('hot'),
    units: expect.any(Number),
  })
})

it('every type of event is in the reference', () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
  const sources = read('../src/observe/event.ts') + read('../src/store/remote/store-event.ts')
  const types = [...sources.matchAll(/readonly type: ('\w+'(?: \| '\w+')*)/g)].flatMap(([, names = '']) =>
    names.replaceAll("'", '').split(' | '),
  )
  const page = read('../../../docs/reference/events.md')
  const listed = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
  expect(listed.filter(name => !['info', 'warn', 'error'].includes(name as string)).sort()).toEqual(
    types.sort(),
  )
})
