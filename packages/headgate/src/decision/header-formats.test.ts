import { readFileSync } from 'node:fs'
import { parseDictionary, parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Decision,
  decisionHeaders,
  defaultTiers,
  type HeaderOptions,
  memoryStore,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from '../index.js'

const reference = readFileSync(new URL('../../../../docs/reference/headers.md', import.meta.url), 'utf8')

function manualClock(startUnixSeconds: number) {
  let us = startUnixSeconds * 1_000_000
  return {
    nowUs: () => us,
    unixMs: () => Math.floor(us / 1000),
    advanceMs: (ms: number) => {
      us += ms * 1000
    },
  }
}

function setUp() {
  const clock = manualClock(1_732_064_340)
  const limiter = createLimiter({
    clock,
    store: memoryStore({ clock }),
    policies: {
      api: [
        slidingWindowLog({ limit: 100, window: '1m' }),
        slidingWindowCounter({ limit: 2_000, window: '1h' }),
      ],
      login: tokenBucket({ capacity: 5, refillPerSecond: 0.1 }),
      fast: slidingWindowLog({ limit: 3, window: '200ms' }),
      odd: { ...slidingWindowLog({ limit: 3, window: '1m' }), id: 'é"\\\r\nx: y' },
    },
    tiers: defaultTiers,
  })
  return { clock, limiter }
}

function linesOf(decision: Decision, options?: HeaderOptions): string[] {
  return decisionHeaders(decision, options).map(([name, value]) => `${name}: ${value}`)
}

function namesOf(decision: Decision, options?: HeaderOptions): string[] {
  return decisionHeaders(decision, options).map(([name]) => name)
}

/** The reference page shows these very lines, so that it cannot drift from the code. */
function expectDocumented(lines: readonly string[]): void {
  expect(reference).toContain(lines.join('\n'))
}

describe('legacy headers', () => {
  it('legacy headers tell the binding limit, with the reset as a Unix time', async () => {
    const { limiter } = setUp()
    const lines = linesOf(await limiter.check('user:1', { policy: 'api', cost: 13 }), { style: 'legacy' })
    expect(lines).toEqual([
      'X-RateLimit-Limit: 100',
      'X-RateLimit-Remaining: 87',
      'X-RateLimit-Reset: 1732064400',
      'X-RateLimit-Window: 60',
      'X-RateLimit-Policy: api',
      'X-RateLimit-Cost: 13',
    ])
    expectDocumented(lines)
  })

  it('legacy headers tell both numbers of a tier with a burst, and what is usable now', async () => {
    const { limiter } = setUp()
    const lines = linesOf(await limiter.check('user:1', { tier: 'pro' }), { style: 'legacy' })
    expect(lines).toEqual([
      'X-RateLimit-Limit: 100',
      'X-RateLimit-Remaining: 299',
      'X-RateLimit-Reset: 1732064400',
      'X-RateLimit-Window: 60',
      'X-RateLimit-Policy: tier',
      'X-RateLimit-Tier: pro',
      'X-RateLimit-Burst: 300',
      'X-RateLimit-Cost: 1',
    ])
    expectDocumented(lines)
  })

  it('legacy headers leave the burst out for a tier that has none', async () => {
    const { limiter } = setUp()
    const names = namesOf(await limiter.check('internal:job', { tier: 'internal' }), { style: 'legacy' })
    expect(names).toContain('X-RateLimit-Tier')
    expect(names).not.toContain('X-RateLimit-Burst')
  })

  it('legacy headers give a window shorter than a second as 1, and round the reset up', async () => {
    const { limiter } = setUp()
    const lines = linesOf(await limiter.check('user:1', { policy: 'fast' }), { style: 'legacy' })
    expect(lines).toContain('X-RateLimit-Window: 1')
    expect(lines).toContain('X-RateLimit-Reset: 1732064341')
  })
})

describe('IETF headers', () => {
  it('IETF headers list every limit as a policy and tell what is left of the binding one', async () => {
    const { limiter } = setUp()
    const lines = linesOf(await limiter.check('user:1', { policy: 'api', cost: 13 }), { style: 'ietf' })
    expect(lines).toEqual([
      'RateLimit-Policy: "api.log-1m";q=100;w=60, "api.counter-1h";q=2000;w=3600',
      'RateLimit: "api.log-1m";r=87;t=60',
    ])
    expectDocumented(lines)
  })

  it('IETF headers carry a burst as a parameter of our own', async () => {
    const { limiter } = setUp()
    const lines = linesOf(await limiter.check('user:1', { tier: 'pro' }), { style: 'ietf' })
    expect(lines).toEqual([
      'RateLimit-Policy: "tier.log-1m";q=100;w=60;headgate-burst=300, "tier.bucket";q=100;w=60;headgate-burst=300, ' +
        '"tier.counter-1h";q=2000;w=3600, "tier.counter-1d";q=50000;w=86400',
      'RateLimit: "tier.log-1m";r=299;t=60',
    ])
    expectDocumented(lines)
  })

  it('IETF headers end the effective window of a denial when Retry-After does', async () => {
    const { clock, limiter } = setUp()
    await limiter.check('user:1', { policy: 'login', cost: 5 })
    clock.advanceMs(500)
    const lines = linesOf(await limiter.check('user:1', { policy: 'login' }), { style: 'ietf' })
    expect(lines).toEqual([
      'RateLimit-Policy: "login.bucket";q=5;w=50',
      'RateLimit: "login.bucket";r=0;t=10',
      'Retry-After: 10',
    ])
    expectDocumented(lines)
  })

  it('IETF headers turn a name that no header may carry into one that parses', async () => {
    const { limiter } = setUp()
    const headers = new Map(
      decisionHeaders(await limiter.check('user:1', { policy: 'odd' }), { style: 'ietf' }),
    )
    const [item] = parseList(headers.get('RateLimit-Policy') ?? '')
    expect(item?.[0]).toBe('odd.?"\\??x: y')
    expect(headers.get('RateLimit')).toBe('"odd.?\\"\\\\??x: y";r=2;t=60')
  })
})

describe('older drafts', () => {
  const cases: readonly (readonly [NonNullable<HeaderOptions['draft']>, readonly string[]])[] = [
    [
      'draft-03',
      ['X-RateLimit-Limit: 100, 100;w=60, 2000;w=3600', 'X-RateLimit-Remaining: 87', 'X-RateLimit-Reset: 60'],
    ],
    [
      'draft-06',
      [
        'RateLimit-Policy: 100;w=60, 2000;w=3600',
        'RateLimit-Limit: 100',
        'RateLimit-Remaining: 87',
        'RateLimit-Reset: 60',
      ],
    ],
    ['draft-07', ['RateLimit-Policy: 100;w=60, 2000;w=3600', 'RateLimit: limit=100, remaining=87, reset=60']],
  ]
  it.each(cases)('the switch selects an older draft: %s', async (draft, expected) => {
    const { limiter } = setUp()
    const lines = linesOf(await limiter.check('user:1', { policy: 'api', cost: 13 }), {
      style: 'ietf',
      draft,
    })
    expect(lines).toEqual(expected)
    expectDocumented(lines)
  })

  it('headers of older drafts list a quota that two limits of a burst share once', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:1', { tier: 'anonymous' })
    const headers = new Map(decisionHeaders(decision, { style: 'ietf', draft: 'draft-06' }))
    expect(headers.get('RateLimit-Policy')).toBe('10;w=60;burst=20, 100;w=3600, 1000;w=86400')
  })

  it('headers of older drafts reset a denial when Retry-After ends', async () => {
    const { limiter } = setUp()
    await limiter.check('user:1', { policy: 'login', cost: 5 })
    const decision = await limiter.check('user:1', { policy: 'login' })
    const headers = new Map(decisionHeaders(decision, { style: 'ietf', draft: 'draft-07' }))
    const dictionary = parseDictionary(headers.get('RateLimit') ?? '')
    expect(dictionary.get('reset')?.[0]).toBe(10)
    expect(headers.get('Retry-After')).toBe('10')
  })

  it('headers of draft-03 win over the legacy headers whose names they share, and none is sent twice', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:1', { policy: 'api', cost: 13 })
    const lines = linesOf(decision, { draft: 'draft-03' })
    expect(lines).toEqual([
      'X-RateLimit-Limit: 100, 100;w=60, 2000;w=3600',
      'X-RateLimit-Remaining: 87',
      'X-RateLimit-Reset: 60',
      'X-RateLimit-Window: 60',
      'X-RateLimit-Policy: api',
      'X-RateLimit-Cost: 13',
    ])
  })
})
