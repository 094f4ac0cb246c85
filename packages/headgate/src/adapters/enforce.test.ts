/** The adapters' common core, tested on requests that belong to no framework. */
import { describe, expect, it, vi } from 'vitest'
import { keepLines } from '../../test/support/kept-lines.ts'
import { configOf, perMinute, ruleOf } from '../../test/support/rule-config.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { defineConfig } from '../config/define-config.js'
import { createLimiter } from '../limiter/limiter.js'
import { defaultTiers } from '../policy/tiers.js'
import { memoryStore } from '../store/memory/memory-store.js'
import { createIdentify } from '../subject/identify.js'
import { ip } from '../subject/sources.js'
import { faultyStore } from '../testing/faulty-store.js'
import { createEnforce, type Framework, type Outcome } from './enforce.js'
import { logFaults } from './log.js'
import type { AnyOptions, RateLimitOptions } from './options.js'

interface Plain {
  readonly method?: string
  readonly url?: string
  readonly peer?: string
  readonly route?: string
  readonly headers?: Readonly<Record<string, string>>
}

const plain: Framework<Plain> = {
  knowsPeer: true,
  read: ({ method = 'GET', url = '/', peer, route, headers = {} }) => ({
    method,
    url,
    peer,
    route,
    header: name => headers[name],
  }),
  origin: request => request,
}

function setUp() {
  return createLimiter({
    policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) },
    tiers: defaultTiers,
  })
}

/** The units that a subject has used of the policy, or of the tier of callers without one. */
async function usedOf(limiter: ReturnType<typeof setUp>, subject: string, options: object): Promise<number> {
  const { remaining } = await ('tier' in options
    ? limiter.peek(subject, { tier: 'anonymous' })
    : limiter.peek(subject, { policy: 'api' }))
  return ('tier' in options ? 20 : 2) - remaining
}

/** Options that bypass the types, as a JavaScript program might pass. */
const enforceWith = (options: object) => createEnforce(options as AnyOptions<Plain>, plain)
const from = (peer: string, more: Plain = {}): Plain => ({ peer, ...more })
/** Long enough for Node to report an unhandled rejection. */
const nextTurn = () => new Promise(resolve => setImmediate(resolve))
const statusOf = (outcome: Outcome): number => (outcome.allowed ? 200 : outcome.status)
const headersOf = ({ headers }: Outcome): Record<string, string> => Object.fromEntries(headers)

describe('a request', () => {
  it('a request is charged to the address of its client unless another subject is given, and decided synchronously', () => {
    const enforce = enforceWith({ limiter: setUp(), policy: 'api' })
    const ask = (peer: string) => statusOf(enforce(from(peer)) as Outcome)
    expect(['192.0.2.1', '192.0.2.1', '::ffff:192.0.2.1', '192.0.2.2'].map(ask)).toEqual([200, 200, 429, 200])
    expect(['2001:db8::1', '2001:db8::2', '2001:db8::3'].map(ask)).toEqual([200, 200, 429])
  })

  it('a request is charged to the client a trusted proxy names, and not to one that an untrusted header names', () => {
    const trusting = enforceWith({ limiter: setUp(), policy: 'api', trustedProxies: ['10.0.0.0/8'] })
    const ask = (peer: string, forwarded: string) =>
      statusOf(trusting(from(peer, { headers: { 'x-forwarded-for': forwarded } })) as Outcome)
    expect([1, 2, 3].map(id => ask('10.0.0.1', `192.0.2.${id}`))).toEqual([200, 200, 200])
    expect([1, 2, 3].map(id => ask('198.51.100.1', `192.0.2.${id}`))).toEqual([200, 200, 429])
    // The address read for one request is never taken for another's, however it is spelt.
    expect([1, 2, 3, 4].map(id => ask('10.0.0.1', `192.0.2.${id}`))).toEqual([200, 200, 200, 200])
    expect(ask('10.0.0.1', '198.51.100.9, ::ffff:192.0.2.1')).toBe(429)
    expect(ask('10.0.0.1', `${'198.51.100.9, '.repeat(100)}192.0.2.2`)).toBe(429)
  })

  it('a request without a peer address shares one budget with all others like it', () => {
    const enforce = enforceWith({ limiter: setUp(), policy: 'api' })
    expect([{}, {}, {}].map(request => statusOf(enforce(request) as Outcome))).toEqual([200, 200, 429])
  })

  it('a request takes subject, tier, cost and scope from functions, and waits only for asynchronous ones', async () => {
    const limiter = setUp()
    const options: RateLimitOptions<Plain, 'api', keyof typeof defaultTiers> = {
      limiter,
      subject: async ({ url = '1' }) => `user:${url}`,
      tier: () => 'free',
      cost: ({ method }) => (method === 'POST' ? 10 : 1),
      scope: async () => 'export',
    }
    const decided = createEnforce(options as AnyOptions<Plain>, plain)({ method: 'POST' })
    expect(decided).toBeInstanceOf(Promise)
    const { decision } = await decided
    expect(decision).toMatchObject({ tier: 'free', cost: 10 })
    const left = await limiter.peek('user:1', { tier: 'free', scope: 'export' })
    expect((await limiter.peek('user:1', { tier: 'free' })).remaining - left.remaining).toBe(10)
  })

  it('a request has a budget for each route, and shares one with all that match none', () => {
    const enforce = enforceWith({ limiter: setUp(), policy: 'api', subject: 'user:1', perRoute: true })
    const ask = (route?: string) =>
      statusOf(enforce({ url: `/${Math.random()}`, ...(route && { route }) }) as Outcome)
    expect(['/a', '/a', '/a', '/b/:id'].map(ask)).toEqual([200, 200, 429, 200])
    expect([undefined, undefined, undefined].map(ask)).toEqual([200, 200, 429])
  })

  it('a skipped request is neither charged nor reported', async () => {
    const onDecision = vi.fn()
    const limiter = setUp()
    for (const skip of [() => true, async () => true]) {
      const enforce = enforceWith({ limiter, policy: 'api', subject: 'user:1', skip, onDecision })
      expect(await enforce({})).toEqual({
        allowed: true,
        decision: null,
        headers: [],
        ended: null,
        reserveTokens: null,
      })
    }
    expect(onDecision).not.toHaveBeenCalled()
    expect((await limiter.peek('user:1', { policy: 'api' })).remaining).toBe(2)
  })

  it('a request is charged to further subjects, all or none, and once where a middleware further in asks the same', async () => {
    const limiter = setUp()
    const also = async () => [{ subject: 'tenant:acme', policy: 'api' }]
    const enforce = enforceWith({ limiter, policy: 'api', subject: () => 'user:1', also })
    const request = {}
    expect([statusOf(await enforce(request)), statusOf(await enforce(request))]).toEqual([200, 200])
    const left = async (subject: string) => (await limiter.peek(subject, { policy: 'api' })).remaining
    expect([await left('user:1'), await left('tenant:acme')]).toEqual([1, 1])
    await limiter.check('tenant:acme', { policy: 'api' })
    expect(statusOf(await enforce({}))).toBe(429)
    expect(await left('user:1')).toBe(1)
  })

  it('a request is charged once by middlewares that ask the same, and by each that asks something else', async () => {
    const limiter = setUp()
    const onDecision = vi.fn()
    const options = { limiter, policy: 'api', onDecision }
    const [outer, inner] = [
      enforceWith({ ...options, subject: 'user:1' }),
      enforceWith({ ...options, subject: async () => ({ type: 'user', id: '1' }) }),
    ]
    const request = {}
    const first = await outer(request)
    expect((await inner(request)).decision).toBe(first.decision)
    expect(onDecision).toHaveBeenCalledTimes(1)
    await enforceWith({ ...options, subject: 'user:1', scope: 'api' })(request)
    await enforceWith({ ...options, subject: 'user:1', cost: 2 })(request)
    expect(onDecision).toHaveBeenCalledTimes(3)
    expect((await limiter.peek('user:1', { policy: 'api' })).remaining).toBe(1)
  })
})

describe('a rejection', () => {
  const deny = (options: object, request: Plain = {}): Extract<Outcome, { allowed: false }> => {
    const enforce = enforceWith({ limiter: setUp(), policy: 'api', subject: 'user:1', cost: 3, ...options })
    const outcome = enforce(request) as Outcome
    if (outcome.allowed) throw new Error('expected a rejection')
    return outcome
  }

  it('a rejection is a problem for programs and a page for browsers', () => {
    for (const accept of [undefined, '*/*', 'application/json, text/html']) {
      const { headers, body } = deny({}, accept === undefined ? {} : { headers: { accept } })
      expect(new Map(headers).get('Content-Type')).toBe('application/problem+json')
      expect(JSON.parse(body)).toMatchObject({ status: 429, policy: 'api' })
    }
    const browser = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }
    const page = deny({}, browser)
    expect(headersOf(page)).toMatchObject({
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
    })
    expect(page.body).toMatch(/^<!doctype html>[\s\S]*<h1>Quota exceeded<\/h1>/)
  })

  it('a rejection carries the body of the app instead: text, JSON, or a type of its own', () => {
    const text = deny({ body: () => 'slow down' })
    expect([text.body, headersOf(text)['Content-Type']]).toEqual(['slow down', 'text/plain; charset=utf-8'])
    const json = deny(
      { body: ({ limit }: { limit: number }, request: Plain) => ({ limit, url: request.url }) },
      { url: '/a' },
    )
    expect([json.body, headersOf(json)['Content-Type']]).toEqual([
      '{"limit":2,"url":"/a"}',
      'application/json',
    ])
    const xml = deny({ body: () => '<slow/>', contentType: 'application/xml' })
    expect(headersOf(xml)['Content-Type']).toBe('application/xml')
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('mine')
      },
    ],
    ['returns a value that JSON cannot express', () => undefined],
    ['returns a promise', async () => 'later'],
  ])('a rejection falls back to the default body if the own one %s', (_, body) => {
    const errors: unknown[] = []
    const { status, headers } = deny({ body, onError: (error: unknown) => errors.push(error) })
    expect([status, new Map(headers).get('Content-Type')]).toEqual([429, 'application/problem+json'])
    expect(errors).toHaveLength(1)
  })

  it('rejections spread their Retry-After over the jitter, from nothing to all of it', () => {
    const drawn = [0, 0.25, 0.5, 1 - Number.EPSILON]
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) },
      clock: { nowUs: () => 0, unixMs: () => 0 },
    })
    const options = { limiter, policy: 'api', subject: 'user:1', retryAfterJitterMs: 40_000 }
    const waits = drawn.map(value => {
      const enforce = createEnforce(options as AnyOptions<Plain>, plain, () => value)
      for (let request = 0; request < 2; request++) enforce({})
      return Number(headersOf(enforce({}) as Outcome)['Retry-After'])
    })
    expect(waits).toEqual([60, 70, 80, 100])
  })

  it('a rejection reveals no hidden names, and carries the chosen headers', () => {
    const hidden = deny({ hide: ['policy', 'tier'], headers: 'both' })
    expect(JSON.stringify(hidden.headers) + hidden.body).not.toContain('api')
    expect(Object.keys(headersOf(deny({ headers: { style: 'ietf' } })))).toContain('RateLimit')
    expect(Object.keys(headersOf(deny({})))).toContain('X-RateLimit-Limit')
    expect(Object.keys(headersOf(deny({ headers: 'none', cost: 3 })))).toEqual([
      'Content-Type',
      'Cache-Control',
    ])
  })
})

describe('listeners', () => {
  it('a listener hears every decision, and every denial, with its request; what it throws changes nothing', async () => {
    const errors: unknown[] = []
    const heard: string[] = []
    const enforce = enforceWith({
      limiter: setUp(),
      policy: 'api',
      subject: 'user:1',
      onDecision({ allowed }: { allowed: boolean }, { url }: Plain) {
        heard.push(`${url} ${allowed}`)
        throw new Error('decided')
      },
      async onDenied(_: unknown, { url }: Plain) {
        heard.push(`${url} denied`)
        throw new Error('denied')
      },
      onError: (error: Error) => errors.push(error.message),
    })
    for (const url of ['/1', '/2', '/3']) enforce({ url })
    await Promise.resolve()
    expect(heard).toEqual(['/1 true', '/2 true', '/3 false', '/3 denied'])
    expect(errors.sort()).toEqual(['decided', 'decided', 'decided', 'denied'])
  })

  it('a fault is logged once a minute, with the number of those left out', () => {
    const { logger, lines, fields } = keepLines()
    let nowUs = 0
    const report = logFaults(logger, { nowUs: () => nowUs, unixMs: () => 0 })
    for (let time = 0; time < 1_000; time++) report(new Error('no session'))
    nowUs += 60_000_000
    report('odd')
    expect(lines).toEqual([
      'error: a request could not be limited, so the failure mode decided: no session',
      'error: a request could not be limited, so the failure mode decided: odd (and 999 more since the last time)',
    ])
    expect(fields[0]).toEqual({ err: new Error('no session') })
    report(new Error('no database'), { source: 'redis' })
    expect(lines[2]).toBe('error: a caller could not be looked up, so its address was charged: no database')
  })
})

describe('a fault', () => {
  const never = new Promise<never>(() => {})
  const throws = () => {
    throw new Error('mine')
  }
  const IP = 'ip:192.0.2.1'
  /** What fails or is of no use, and who is charged instead. */
  const FAILING: readonly (readonly [string, object, string])[] = [
    ['throws', { subject: throws }, IP],
    ['rejects', { subject: () => Promise.reject(new Error('mine')) }, IP],
    ['never settles', { subject: () => never, lookupTimeoutMs: 20 }, IP],
    ['is of the cost', { subject: 'user:1', cost: throws }, 'user:1'],
    ['is of skip', { subject: 'user:1', skip: () => never, lookupTimeoutMs: 20 }, 'user:1'],
    ['is of the tier', { subject: 'user:1', tier: throws, policy: undefined }, 'user:1'],
  ]
  const USELESS: readonly (readonly [string, object, string])[] = [
    ['nothing', { subject: () => undefined }, IP],
    ['a number', { subject: () => 42 }, IP],
    ['no type', { subject: async () => 'somebody' }, IP],
    ['a list where none is known', { subject: () => ['user:1'] }, IP],
    ['a cost below 0', { subject: 'user:1', cost: () => -1 }, 'user:1'],
    ['a cost that is no number', { subject: 'user:1', cost: () => '7' }, 'user:1'],
    ['a scope that is no text', { subject: 'user:1', scope: () => 42 }, 'user:1'],
    ['an unknown tier', { subject: 'user:1', tier: () => 'gone', policy: undefined }, 'user:1'],
    ['no tier', { subject: 'user:1', tier: () => undefined, policy: undefined }, 'user:1'],
  ]

  it.each(FAILING)(
    'a fault that %s frees nobody: somebody is charged, and it is told once; closed rejects and charges nobody',
    async (_, options, charged) => {
      for (const [onStoreFailure, status] of [
        ['open', 200],
        [undefined, 200],
        ['closed', 503],
      ] as const) {
        const limiter = setUp()
        const errors: unknown[] = []
        const onError = (error: unknown, decision: unknown) => errors.push([error, decision])
        const { logger } = keepLines()
        const ask = { policy: 'api', onStoreFailure, onError, logger, ...options }
        const outcome = await enforceWith({ limiter, ...ask })({ peer: '192.0.2.1' })
        expect(statusOf(outcome)).toBe(status)
        expect(errors).toEqual([[expect.any(Error), outcome.decision]])
        expect(limiter.counts().faults).toBe(status === 503 ? 1 : 0)
        expect(await usedOf(limiter, charged, options)).toBe(status === 503 ? 0 : 1)
      }
    },
  )

  it.each(USELESS)(
    'a function that returns %s frees nobody, whatever the failure mode',
    async (_, options, charged) => {
      for (const onStoreFailure of ['open', 'local', 'closed'] as const) {
        const limiter = setUp()
        const { logger } = keepLines()
        const enforce = enforceWith({ limiter, policy: 'api', onStoreFailure, logger, ...options })
        expect(statusOf(await enforce({ peer: '192.0.2.1' }))).toBe(200)
        expect(await usedOf(limiter, charged, options)).toBe(1)
        expect(limiter.counts().faults).toBe(0)
      }
    },
  )

  it('a cost that a client can choose is never too much to be counted', async () => {
    const { logger } = keepLines()
    for (const [cost, status] of [
      [1e300, 429],
      [Number.POSITIVE_INFINITY, 429],
      [2.5, 429],
      [1.5, 200],
      [Number.NaN, 200],
    ] as const) {
      const enforce = enforceWith({
        limiter: setUp(),
        policy: 'api',
        subject: 'user:1',
        cost: () => cost,
        logger,
      })
      expect([cost, statusOf(await enforce({}))]).toEqual([cost, status])
    }
  })

  it('a subject that names nobody is found by trusted proxies, of the options or of the limiter’s file', async () => {
    const file = defineConfig({ tiers: 'default', trustedProxies: ['10.0.0.0/8'] })
    const ruled = createLimiter({ config: file })
    const requestNow = vi.spyOn(ruled, 'requestNow')
    const limiter = setUp()
    const behind = from('10.0.0.1', { headers: { 'x-forwarded-for': '192.0.2.9' } })
    await enforceWith({ limiter: ruled, subject: () => null })(behind)
    expect(requestNow.mock.lastCall?.[0].subject).toBe('ip:192.0.2.9')
    await enforceWith({
      limiter: ruled,
      subject: () => ['user:', 'tenant:acme', 'user:null'],
      logger: keepLines().logger,
    })(behind)
    expect(requestNow.mock.lastCall?.[0].subject).toBe('tenant:acme')
    const trustedProxies = ['10.0.0.0/8']
    await enforceWith({ limiter, policy: 'api', subject: () => null, trustedProxies })(behind)
    expect((await limiter.peek('ip:192.0.2.9', { policy: 'api' })).remaining).toBe(1)
  })

  it('a subject that resolves too late charges nobody', async () => {
    const limiter = setUp()
    let late: (subject: string) => void = () => {}
    const subject = () =>
      new Promise(resolve => {
        late = resolve
      })
    const enforce = enforceWith({ limiter, policy: 'api', subject, lookupTimeoutMs: 20, onError: () => {} })
    expect((await enforce({})).allowed).toBe(true)
    late('user:1')
    await Promise.resolve()
    expect((await limiter.peek('user:1', { policy: 'api' })).remaining).toBe(2)
  })

  it('several functions that fail for one request are one fault, and none of them ends the process', async () => {
    const fails = () => Promise.reject(new Error('first'))
    const throws = () => {
      throw new Error('second')
    }
    const told: unknown[] = []
    const onError = (error: unknown) => told.push((error as Error).message)
    const functions = { subject: fails, scope: fails, also: throws }
    const outcome = await enforceWith({ limiter: setUp(), policy: 'api', onError, ...functions })({})
    expect([statusOf(outcome), told]).toEqual([200, ['second']])
    await nextTurn()
  })

  it('listeners and bodies that reject later do not end the process', async () => {
    const fails = () => Promise.reject(new Error('mine'))
    const limiter = setUp()
    const enforce = enforceWith({ limiter, policy: 'api', subject: 'user:1', body: fails, onError: fails })
    for (let times = 0; times < 2; times++) await enforce({})
    expect(statusOf(await enforce({}))).toBe(429)
    await nextTurn()
  })

  it('a request that cannot be read is decided by the failure mode of the limiter', async () => {
    const ruled = createLimiter({ config: configOf({ policies: { login: perMinute(1) } }) })
    const unreadable: Framework<Plain> = {
      ...plain,
      read() {
        throw new Error('mine')
      },
    }
    const enforce = createEnforce({ limiter: ruled, onError: () => {} } as AnyOptions<Plain>, unreadable)
    expect(statusOf(await enforce({}))).toBe(200)
    expect(ruled.counts().faults).toBe(1)
  })

  it('a failing store counts as a fault of the limiter, and a throwing listener adds no other', async () => {
    const store = faultyStore(memoryStore())
    const limiter = createLimiter({ store, policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) } })
    const onError = () => {
      throw new Error('mine, too')
    }
    for (const asked of ['always', 'lost'] as const) {
      store.faults.always(asked === 'always' ? { type: 'error' } : { type: 'lost-reply' })
      const closed = enforceWith({
        limiter,
        policy: 'api',
        subject: 'user:1',
        onStoreFailure: 'closed',
        onError,
      })
      expect(statusOf(await closed({}))).toBe(503)
    }
  })

  it('a fault behind a limiter is decided by the rule that matches, and the rules hold in every spelling', async () => {
    const strict = ruleOf({
      name: 'login',
      match: { methods: ['POST'], path: '/login' },
      charge: { policy: 'login' },
      onStoreFailure: 'closed',
    })
    const ruled = createLimiter({ config: configOf({ policies: { login: perMinute(1) }, rules: [strict] }) })
    const broken = enforceWith({
      limiter: ruled,
      onError: () => {},
      subject: () => {
        throw new Error('mine')
      },
    })
    const whole = enforceWith({ limiter: ruled, subject: ['user:1', 'ip:192.0.2.1'] })
    for (const url of ['/login', '/a/%2e%2e/LOGIN', 'http://example.com/login?x'])
      expect(statusOf(await broken({ method: 'POST', url }))).toBe(503)
    expect(statusOf(await broken({ url: '/login' }))).toBe(200)
    expect(ruled.counts().faults).toBe(3)
    expect(statusOf(await whole({ method: 'POST', url: '/login' }))).toBe(200)
    const claimed = { method: 'GET', url: '/login', headers: { 'x-http-method-override': 'POST' } }
    expect(statusOf(await whole(claimed))).toBe(429)
  })
})

describe('a limiter without a subject option', () => {
  const anonymous = { minute: 1 }
  const fileOf = (more: object) =>
    defineConfig({
      tiers: { anonymous, pro: { minute: 3 } },
      default: { tier: 'anonymous' },
      ...more,
    })
  const file = fileOf({ subjects: { 'apikey:pro-key-456': { tier: 'pro' } }, trustedProxies: ['10.0.0.0/8'] })
  const subject = { secret: 'a secret of the test' }
  const withKey = from('192.0.2.1', { headers: { 'x-api-key': 'pro-key-456' } })
  const forwarded = from('10.0.0.1', { headers: { 'x-forwarded-for': '192.0.2.9' } })

  function setUpGate(config = file) {
    const ruled = createLimiter({ config, subject })
    const requestNow = vi.spyOn(ruled, 'requestNow')
    async function whoAsks(request: Plain, options: object = {}): Promise<unknown> {
      const { decision } = await enforceWith({ limiter: ruled, ...options })({ ...request })
      return [requestNow.mock.lastCall?.[0].subject, decision?.tier]
    }
    return { limiter: ruled, whoAsks }
  }

  it('an adapter finds callers by the keys and proxies of the limiter’s file, and by those of the next', async () => {
    const { limiter: ruled, whoAsks } = setUpGate()
    expect(await whoAsks(withKey)).toEqual([['apikey:pro-key-456', 'ip:192.0.2.1'], 'pro'])
    expect(await whoAsks(forwarded)).toEqual(['ip:192.0.2.9', 'anonymous'])
    await ruled.reload(fileOf({}))
    expect(await whoAsks(withKey)).toEqual(['ip:192.0.2.1', 'anonymous'])
    expect(await whoAsks(forwarded)).toEqual(['ip:10.0.0.1', 'anonymous'])
  })

  it('an adapter with a subject of its own ignores the sources of the limiter’s file', async () => {
    const { whoAsks } = setUpGate()
    const identify = createIdentify({ sources: [ip()] })
    expect(await whoAsks(withKey, { subject: 'user:1' })).toEqual(['user:1', 'anonymous'])
    expect(await whoAsks(withKey, { identify })).toEqual(['ip:192.0.2.1', 'anonymous'])
    expect(await whoAsks(withKey, { trustedProxies: [] })).toEqual(['ip:192.0.2.1', 'anonymous'])
  })

  it('a file that verifies tokens is rejected without identifyByConfig, at the start and at a reload', async () => {
    const jwt = { secretFile: '/no/such/file', algorithms: ['HS256'], issuer: 'i', audience: 'a' }
    const broken = fileOf({ identify: [{ jwt }] })
    const rejected = /^identify: expected identifyByConfig\(config\)/
    const { limiter: ruled } = setUpGate(broken)
    expect(() => enforceWith({ limiter: ruled })).toThrow(rejected)
    expect(() => enforceWith({ limiter: ruled, trustedProxies: ['10.0.0.0/8'] })).toThrow(rejected)
    enforceWith({ limiter: ruled, subject: 'user:1' })
    await ruled.reload(file)
    await ruled.reload(broken)
    await ruled.reload(file)
    enforceWith({ limiter: ruled })
    await expect(ruled.reload(broken)).rejects.toThrow(rejected)
  })
})

describe('options that are wrong are rejected at the start, by name', () => {
  const limiter = setUp()
  const ruled = createLimiter({ config: configOf() })
  const WRONG: readonly (readonly [string, unknown])[] = [
    ['options', null],
    ['limiter', {}],
    ['limiter', { limiter: {}, policy: 'api' }],
    ['policy', { limiter }],
    ['tier', { limiter, policy: 'api', tier: 'free' }],
    ['policy', { limiter, policy: 'apo' }],
    ['policy', { limiter: ruled, policy: 'api' }],
    ['polcy', { limiter, polcy: 'api' }],
    ['onStoreFailure', { limiter: ruled, onStoreFailure: 'open' }],
    ['tier', { limiter, tier: 'gold' }],
    ['subject', { limiter, policy: 'api', subject: 'somebody' }],
    ['subject', { limiter: ruled, subject: [] }],
    ['subject', { limiter, policy: 'api', subject: ['user:1'] }],
    ['trustedProxies', { limiter, policy: 'api', subject: 'user:1', trustedProxies: 'all' }],
    ['trustedProxies', { limiter, policy: 'api', trustedProxies: 'all' }],
    ['also', { limiter, policy: 'api', also: 'tenant:acme' }],
    ['also', { limiter, policy: 'api', also: [{ subject: 'tenant:acme', policy: 'apo' }] }],
    ['subject', { limiter, policy: 'api', also: [{ policy: 'api' }] }],
    ['also', { limiter: ruled, also: [] }],
    ['cost', { limiter, policy: 'api', cost: 0.5 }],
    ['scope', { limiter, policy: 'api', scope: '' }],
    ['scope', { limiter, policy: 'api', scope: 'a', perRoute: true }],
    ['perRoute', { limiter, policy: 'api', perRoute: 'yes' }],
    ['skip', { limiter, policy: 'api', skip: true }],
    ['onError', { limiter, policy: 'api', onError: console }],
    ['style', { limiter, policy: 'api', headers: 'all' }],
    ['draft', { limiter, policy: 'api', headers: { draft: 'draft-99' } }],
    ['hide', { limiter, policy: 'api', hide: 'tier' }],
    ['contentType', { limiter, policy: 'api', contentType: 'text/html' }],
    ['contentType', { limiter, policy: 'api', body: () => '', contentType: 'text/html\r\nx: y' }],
    ['retryAfterJitterMs', { limiter, policy: 'api', retryAfterJitterMs: -1 }],
    ['lookupTimeoutMs', { limiter, policy: 'api', lookupTimeoutMs: 0 }],
    ['onStoreFailure', { limiter, policy: 'api', onStoreFailure: 'shut' }],
  ]

  it.each(WRONG)('a wrong option is rejected at the start by its name: %s', (field, options) => {
    expect(() => enforceWith(options as object)).toThrow(
      expect.objectContaining({
        code: expect.stringMatching(/^ERR_HEADGATE_INVALID_/),
        message: expect.stringMatching(new RegExp(`^${field}\\b`)),
      }),
    )
  })
})
