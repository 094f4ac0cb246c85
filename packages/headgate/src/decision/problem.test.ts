import { readFileSync } from 'node:fs'
import { parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import { changed } from '../../test/support/changed.ts'
import { defineConfig } from '../config.js'
import { graphqlCost } from '../cost.js'
import {
  concurrency,
  createLimiter,
  type DecisionSource,
  decisionHeaders,
  decisionProblem,
  defaultTiers,
  memoryStore,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from '../index.js'
import type { MemoryStore } from '../store/memory/memory-store.js'

const reference = readFileSync(new URL('../../../../docs/reference/headers.md', import.meta.url), 'utf8')

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
  const clock = { us: 1_732_064_340_000_000, nowUs: () => clock.us, unixMs: () => clock.us / 1000 }
  const limiter = createLimiter({
    clock,
    store: storeOf(memoryStore({ clock }), source),
    policies: {
      api: [
        slidingWindowLog({ limit: 10, window: '1m' }),
        slidingWindowCounter({ limit: 12, window: '1h' }),
        slidingWindowCounter({ limit: 1_000, window: '1d' }),
      ],
      thirds: tokenBucket({ capacity: 10, refillPerSecond: 3 }),
      banned: slidingWindowLog({ limit: 0, window: '1m' }),
    },
    tiers: defaultTiers,
  })
  return { clock, limiter }
}

describe('the problem of a denial', () => {
  it('the problem of a denial is a 429 that says which limit, how much and when', async () => {
    const { clock, limiter } = setUp()
    await limiter.check('user:1', { policy: 'api', cost: 10 })
    clock.us += 48_500_000
    const problem = decisionProblem(await limiter.check('user:1', { policy: 'api' }))
    expect(problem).toEqual({
      status: 429,
      headers: [
        ['Content-Type', 'application/problem+json'],
        ['Cache-Control', 'no-store'],
      ],
      body: {
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Quota exceeded',
        status: 429,
        detail: 'Limit of 10 requests per 1m for policy api is used up; try again in 12 s.',
        'violated-policies': ['api.log-1m'],
        retryAfterMs: 11_500,
        limit: 10,
        remaining: 0,
        policy: 'api',
        tier: null,
      },
    })
    expect(reference).toContain(JSON.stringify(problem.body, null, 2))
  })

  it('the problem names every limit that denied, as RateLimit-Policy names it', async () => {
    const { limiter } = setUp()
    await limiter.check('user:1', { policy: 'api', cost: 10 })
    const decision = await limiter.check('user:1', { policy: 'api', cost: 4 })
    const violated = decisionProblem(decision).body['violated-policies']
    expect(violated).toEqual(['api.log-1m', 'api.counter-1h'])
    const advertised = new Map(decisionHeaders(decision, { style: 'ietf' })).get('RateLimit-Policy') ?? ''
    expect(parseList(advertised).map(([name]) => name)).toEqual(expect.arrayContaining([...violated]))
  })

  it('the problem names nothing that is hidden, and says one time everywhere when it says a later one', async () => {
    const { limiter } = setUp()
    await limiter.check('user:1', { policy: 'api', cost: 10 })
    const decision = await limiter.check('user:1', { policy: 'api', cost: 4 })
    const options = { hide: ['policy', 'tier'], laterByMs: 5_000 } as const
    const { body } = decisionProblem(decision, options)
    expect(JSON.stringify(body)).not.toContain('api')
    expect(body).toMatchObject({ policy: null, tier: null, 'violated-policies': ['limit-1', 'limit-2'] })
    expect(body.retryAfterMs).toBe((decision.retryAfterMs ?? 0) + 5_000)
    const seconds = new Map(decisionHeaders(decision, options)).get('Retry-After')
    expect(Number(seconds)).toBe(Math.ceil((body.retryAfterMs ?? 0) / 1000))
    expect(body.detail).toContain(`try again in ${seconds} s`)
  })

  it('the problem does not call a limit used up that cheaper requests still fit', async () => {
    const { limiter } = setUp()
    await limiter.check('user:1', { policy: 'thirds', cost: 7 })
    const { detail } = decisionProblem(await limiter.check('user:1', { policy: 'thirds', cost: 5 })).body
    expect(detail).toBe(
      'Limit of 10 requests per 3334ms for policy thirds has 3 left and the request costs 5; try again in 1 s.',
    )
  })

  it('the problem tells a tier by its name', async () => {
    const { limiter } = setUp()
    await limiter.check('ip:192.0.2.1', { tier: 'anonymous', cost: 20 })
    const { body } = decisionProblem(await limiter.check('ip:192.0.2.1', { tier: 'anonymous' }))
    expect(body.detail).toBe(
      'Limit of 20 requests at once, 10 per 1m for tier anonymous is used up; try again in 60 s.',
    )
    expect(body).toMatchObject({ policy: 'tier', tier: 'anonymous', limit: 10, remaining: 0 })
  })

  it('the problem blames the policy of the rule that denied, and not the tier of the caller', async () => {
    const config = defineConfig({
      policies: { login: slidingWindowLog({ limit: 1, window: '1m' }), uploads: concurrency({ limit: 1 }) },
      rules: [
        { match: { path: '/login' }, policy: 'login' },
        { match: { path: '/uploads' }, policy: 'uploads' },
      ],
    })
    const ruled = createLimiter({ config })
    const denialOf = async (path: string) => {
      const request = { subject: 'ip:192.0.2.1', method: 'POST', path } as const
      await ruled.request(request)
      return ruled.request(request)
    }
    const login = await denialOf('/login')
    expect(login).toMatchObject({ policy: 'login', tier: 'anonymous' })
    expect(decisionProblem(login).body.detail).toMatch(
      /^Limit of 1 requests per 1m for policy login is used up/,
    )
    expect(decisionProblem(login, { hide: ['policy'] }).body.detail).toContain('for this caller is used up')
    expect(decisionProblem(login, { hide: ['tier'] }).body.detail).toContain('for policy login is used up')
    expect(decisionProblem(await denialOf('/uploads')).body.detail).toMatch(
      /^1 request is in flight, as many as policy uploads allows at once/,
    )
  })

  it('the problem says that retrying will not help a cost above the capacity, or a ban', async () => {
    const { limiter } = setUp()
    const dear = decisionProblem(await limiter.check('user:1', { tier: 'pro', cost: 301 })).body
    expect(dear.detail).toBe(
      'The request costs 301, more than the 300 that tier pro allows at once; retrying will not help.',
    )
    expect(dear).toMatchObject({ status: 429, retryAfterMs: null, remaining: 300 })
    const endless = graphqlCost('query { ...f } fragment f on Query { a ...f }')
    const uncounted = decisionProblem(await limiter.check('user:1', { tier: 'pro', cost: endless })).body
    expect(uncounted.detail).toBe(
      'The request cannot be counted, and costs more than the 300 that tier pro allows at once; retrying will not help.',
    )
    const banned = decisionProblem(await limiter.check('user:1', { policy: 'banned' })).body
    expect(banned.detail).toBe('No requests are allowed for policy banned; retrying will not help.')
  })

  it('the problem is a 503 without numbers when the limits could not be looked at', async () => {
    const { limiter } = setUp('closed')
    await limiter.check('user:1', { policy: 'api', cost: 10 })
    const { status, body } = decisionProblem(await limiter.check('user:1', { policy: 'api' }))
    expect(status).toBe(503)
    expect(body).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Temporarily reduced capacity',
      status: 503,
      detail: 'Limits cannot be checked at the moment; try again in 1 s.',
      'violated-policies': [],
      retryAfterMs: 1_000,
      limit: null,
      remaining: null,
      policy: 'api',
      tier: null,
    })
  })

  it('the problem never tells the subject', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:somebody-private', { policy: 'banned' })
    expect(JSON.stringify(decisionProblem(decision))).not.toContain('somebody-private')
  })

  it('there is no problem of a decision that was allowed: asking for one is rejected', async () => {
    const { limiter } = setUp()
    const decision = await limiter.check('user:1', { policy: 'api' })
    expect(() => decisionProblem(decision)).toThrow(/^decision: expected a denied one/)
  })
})
