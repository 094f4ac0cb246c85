import { describe, expect, it } from 'vitest'
import { changed } from '../../test/support/changed.ts'
import { defineConfig } from '../config.js'
import {
  concurrency,
  createLimiter,
  type Decision,
  type DecisionSource,
  decisionHeaders,
  type HeaderOptions,
  memoryStore,
  slidingWindowLog,
  tier,
  tokenBucket,
} from '../index.js'
import type { MemoryStore } from '../store/memory/memory-store.js'

/** Counts in memory and says that another has decided. */
function storeOf(memory: MemoryStore, source: DecisionSource) {
  return changed(memory, {
    source,
    decide(check) {
      memory.charge(check, check.plan, check.atUs)
      check.settle(source)
    },
  })
}

function setUp(source: DecisionSource = 'memory') {
  const clock = { nowUs: () => 1_732_064_340_000_000, unixMs: () => 1_732_064_340_000 }
  const limiter = createLimiter({
    clock,
    store: storeOf(memoryStore({ clock }), source),
    policies: {
      api: slidingWindowLog({ limit: 100, window: '1m' }),
      login: tokenBucket({ capacity: 5, refillPerSecond: 0.1 }),
      streams: [slidingWindowLog({ limit: 100, window: '1m' }), concurrency({ limit: 1, holdFor: '30s' })],
    },
    tiers: { everything: tier({}) },
  })
  return { limiter }
}

function linesOf(decision: Decision, options?: HeaderOptions): string[] {
  return decisionHeaders(decision, options).map(([name, value]) => `${name}: ${value}`)
}

it('headers name a limit of requests in flight by its unit, and a denied request gets a Retry-After', async () => {
  const { limiter } = setUp()
  const policy =
    'RateLimit-Policy: "streams.log-1m";q=100;w=60, "streams.concurrency";q=1;qu="concurrent-requests"'
  const allowed = await limiter.check('user:1', { policy: 'streams' })
  expect(linesOf(allowed, { style: 'ietf' })).toEqual([policy, 'RateLimit: "streams.log-1m";r=99;t=60'])
  const denied = await limiter.check('user:1', { policy: 'streams' })
  expect(linesOf(denied, { style: 'ietf' })).toEqual([
    policy,
    'RateLimit: "streams.concurrency";r=0;t=1',
    'Retry-After: 1',
  ])
})

describe('what the responses about a limit share is written once', () => {
  it('but each names its own numbers, and what it may name', async () => {
    const { limiter } = setUp()
    const first = await limiter.check('user:1', { policy: 'api' })
    const second = await limiter.check('user:1', { policy: 'api', cost: 7 })
    expect(linesOf(first)).toEqual([
      'X-RateLimit-Limit: 100',
      'X-RateLimit-Remaining: 99',
      'X-RateLimit-Reset: 1732064400',
      'X-RateLimit-Window: 60',
      'X-RateLimit-Policy: api',
      'X-RateLimit-Cost: 1',
    ])
    expect(linesOf(second, { hide: ['policy'] })).toEqual([
      'X-RateLimit-Limit: 100',
      'X-RateLimit-Remaining: 92',
      'X-RateLimit-Reset: 1732064400',
      'X-RateLimit-Window: 60',
      'X-RateLimit-Cost: 7',
    ])
    expect(linesOf(second)).toContain('X-RateLimit-Policy: api')
  })

  it('nobody who changes the headers of one response changes those of another', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:1', { policy: 'api' })
    const before = linesOf(decision)
    const list = decisionHeaders(decision) as [string, string][]
    for (const field of list) Reflect.set(field, 1, 'changed')
    list.length = 0
    expect(linesOf(decision)).toEqual(before)
  })

  it('callers of each tier are told theirs', async () => {
    const limiter = createLimiter({
      config: defineConfig({
        tiers: { free: {}, pro: {} },
        default: { policy: 'api' },
        policies: { api: slidingWindowLog({ limit: 100, window: '1m' }) },
        rules: [{ match: { path: '/' }, policy: 'api' }],
      }),
    })
    const tierTold = async (tier: 'free' | 'pro' | undefined) => {
      const facts = { subject: 'user:1', method: 'GET', path: '/', ...(tier && { tier }) }
      return decisionHeaders(await limiter.request(facts)).find(([name]) => name === 'X-RateLimit-Tier')?.[1]
    }
    for (const tier of ['free', 'pro', undefined, 'free'] as const) expect(await tierTold(tier)).toBe(tier)
  })
})

describe('styles', () => {
  it('the style of headers is legacy by default, and both where a draft is named', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:1', { policy: 'api' })
    const legacy = linesOf(decision, { style: 'legacy' })
    const both = [...legacy, ...linesOf(decision, { style: 'ietf' })]
    expect(linesOf(decision)).toEqual(legacy)
    expect(linesOf(decision, { style: 'both' })).toEqual(both)
    expect(linesOf(decision, { draft: 'draft-11' })).toEqual(both)
  })

  it('every style of headers can hide the names of policy and tier', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:1', { policy: 'api' })
    const lines = linesOf(decision, { style: 'both', hide: ['policy', 'tier'] })
    expect(lines.filter(line => line.startsWith('X-RateLimit-Policy'))).toEqual([])
    expect(lines).toContain('RateLimit-Policy: "limit-1";q=100;w=60')
    expect(lines).toContain('RateLimit: "limit-1";r=99;t=60')
    expect(() => linesOf(decision, { hide: ['limit' as 'tier'] })).toThrow(
      /^hide: expected one of policy, tier/,
    )
  })

  it('the style none advertises nothing, and still sends Retry-After', async () => {
    const { limiter } = setUp()
    const allowed = await limiter.check('user:1', { policy: 'login', cost: 5 })
    const denied = await limiter.check('user:1', { policy: 'login' })
    expect(linesOf(allowed, { style: 'none' })).toEqual([])
    expect(linesOf(denied, { style: 'none' })).toEqual(['Retry-After: 10'])
  })

  it('the headers of a decision nobody awaited are rejected', () => {
    const { limiter } = setUp()
    const pending = limiter.check('user:1', { policy: 'api' }) as never
    expect(() => decisionHeaders(pending)).toThrow(/^decision: expected what check resolves to, awaited/)
  })

  it('an unknown style is rejected by name', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:1', { policy: 'api' })
    expect(() => decisionHeaders(decision, { style: 'IETF' as 'ietf' })).toThrow(/^style: expected one of/)
    expect(() => decisionHeaders(decision, { draft: 'toString' as 'draft-03' })).toThrow(/^draft: expected/)
  })
})

describe('unknown quotas are not advertised', () => {
  it('an unlimited tier gets no header at all', async () => {
    const { limiter } = setUp()
    expect(decisionHeaders(await limiter.check('user:1', { tier: 'everything' }))).toEqual([])
  })

  it('a failure mode that lets pass advertises no quota', async () => {
    const { limiter } = setUp('open')
    expect(decisionHeaders(await limiter.check('user:1', { policy: 'api' }))).toEqual([])
  })

  it('a failure mode that denies sends only Retry-After', async () => {
    const { limiter } = setUp('closed')
    await limiter.check('user:1', { policy: 'login', cost: 5 })
    expect(linesOf(await limiter.check('user:1', { policy: 'login' }))).toEqual(['Retry-After: 1'])
  })

  it('a cost that never fits gets no Retry-After', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:1', { policy: 'login', cost: 6 })
    expect(linesOf(decision, { style: 'ietf' })).toEqual([
      'RateLimit-Policy: "login.bucket";q=5;w=50',
      'RateLimit: "login.bucket";r=5;t=50',
    ])
  })
})
