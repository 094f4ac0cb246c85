import { describe, expect, it } from 'vitest'
import { keepLines } from '../../test/support/kept-lines.ts'
import { configOf, perMinute, ruleOf } from '../../test/support/rule-config.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { createLimiter, type RuleLimiter } from '../limiter/limiter.js'
import { defaultTiers } from '../policy/tiers.js'
import { memoryStore } from '../store/memory/memory-store.js'
import { guardedStore } from '../testing/guarded-store.js'
import { rateLimit } from './fetch.js'

const request = (path = '/', init?: RequestInit): Request => new Request(`http://localhost${path}`, init)

function setUp() {
  return createLimiter({
    policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) },
    tiers: defaultTiers,
  })
}

describe('a limited fetch handler', () => {
  it('a limited fetch handler answers until the limit, then 429 with the problem and without running', async () => {
    let ran = 0
    const limited = rateLimit({ limiter: setUp(), policy: 'api', subject: () => 'user:1' })
    const handler = limited(() => {
      ran++
      return new Response('hello', { status: 201, headers: { 'X-Own': 'yes' } })
    })
    const first = await handler(request())
    expect([first.status, await first.text(), first.headers.get('x-own')]).toEqual([201, 'hello', 'yes'])
    expect(first.headers.get('x-ratelimit-remaining')).toBe('1')
    expect(first.headers.get('ratelimit')).toBeNull()
    await handler(request())
    const denied = await handler(request())
    expect(denied.status).toBe(429)
    expect(denied.headers.get('content-type')).toBe('application/problem+json')
    expect(denied.headers.get('cache-control')).toBe('no-store')
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await denied.json()).toMatchObject({ status: 429, policy: 'api', remaining: 0 })
    expect(ran).toBe(2)
  })

  it('a limited fetch handler takes tier and cost from the request, and passes on the runtime’s further arguments', async () => {
    const limited = rateLimit({
      limiter: setUp(),
      subject: async ({ headers }) => ({ type: 'user', id: headers.get('x-user') ?? 'none' }),
      tier: () => 'free',
      cost: ({ url }) => (url.endsWith('/dear') ? 10 : 1),
      headers: { style: 'legacy' },
    })
    const handler = limited((_request, env: { name: string }) => new Response(env.name))
    const answer = await handler(request('/dear', { headers: { 'x-user': '7' } }), { name: 'edge' })
    expect(await answer.text()).toBe('edge')
    expect(answer.headers.get('x-ratelimit-tier')).toBe('free')
    expect(answer.headers.get('x-ratelimit-cost')).toBe('10')
    expect(answer.headers.get('ratelimit')).toBeNull()
  })

  it('a limited fetch handler keeps headers and body of a response that cannot be changed', async () => {
    const limited = rateLimit({ limiter: setUp(), policy: 'api', subject: () => 'user:1' })
    const redirected = await limited(() => Response.redirect('http://localhost/there', 302))(request())
    expect([redirected.status, redirected.headers.get('location')]).toEqual([302, 'http://localhost/there'])
    expect(redirected.headers.get('x-ratelimit-limit')).toBe('2')
  })

  it('a limited fetch handler lets the request pass when the limiter is at fault, and reports the fault', async () => {
    const errors: unknown[] = []
    const subject = (): never => {
      throw new Error('no session')
    }
    const limited = rateLimit({
      limiter: setUp(),
      policy: 'api',
      subject,
      onError: error => {
        errors.push(error)
        throw error
      },
    })
    expect((await limited(() => new Response('hello'))(request())).status).toBe(200)
    expect(errors).toEqual([new Error('no session')])
  })

  it.each([
    ['of this handler', {}, 'closed'],
    ['of the store', { onStoreFailure: 'closed' }, undefined],
  ] as const)(
    'a limited fetch handler rejects with 503 when the limiter is at fault and the failure mode %s is closed',
    async (_, own, mode) => {
      const store = guardedStore(memoryStore(), own)
      const limiter = createLimiter({
        store,
        policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) },
      })
      let ran = false
      const limited = rateLimit({
        limiter,
        policy: 'api',
        subject: () => {
          throw new Error('no session')
        },
        onError: () => {},
        ...(mode && { onStoreFailure: mode }),
      })
      const rejected = await limited(() => {
        ran = true
        return new Response('hello')
      })(request())
      expect([rejected.status, rejected.headers.get('content-type')]).toEqual([
        503,
        'application/problem+json',
      ])
      expect([rejected.headers.get('retry-after'), rejected.headers.get('ratelimit')]).toEqual(['1', null])
      expect(await rejected.json()).toMatchObject({ status: 503, limit: null, remaining: null })
      expect([ran, limiter.counts()]).toEqual([false, expect.objectContaining({ faults: 1 })])
      await limiter.close()
    },
  )

  it('a fetch handler limits by its address, shared budget or lowest tier whatever throws in cost and tier', async () => {
    const limiter = setUp()
    const fail = (): never => {
      throw new Error('mine')
    }
    const asks = [{ policy: 'api', cost: fail }, { tier: fail }] as const
    for (const ask of asks) {
      for (const [onStoreFailure, status] of [
        ['open', 200],
        ['local', 200],
        ['closed', 503],
      ] as const) {
        const { logger } = keepLines()
        const options = {
          limiter,
          subject: () => 'user:1' as const,
          onError: () => {},
          onStoreFailure,
          logger,
        }
        const answer = await rateLimit({ ...options, ...ask })(() => new Response('hello'))(request())
        expect(answer.status).toBe(status)
      }
    }
    expect(limiter.counts().faults).toBe(2)
    expect((await limiter.peek('user:1', { policy: 'api' })).remaining).toBe(0)
  })

  it('a response that cannot be copied is passed on as it is: a switch of protocols, an error, an empty answer', async () => {
    // Node rejects to create such a response, as it rejects to copy one from a runtime that does.
    const switching = Object.defineProperty(new Response(null), 'status', { value: 101 })
    for (const response of [switching, Response.error()]) {
      const limited = rateLimit({ limiter: setUp(), policy: 'api', subject: () => 'user:1' })
      expect(await limited(() => response)(request())).toBe(response)
    }
    for (const status of [204, 205, 304]) {
      const limited = rateLimit({ limiter: setUp(), policy: 'api', subject: () => 'user:1' })
      const answer = await limited(() => new Response(null, { status }))(request())
      expect([answer.status, answer.headers.get('x-ratelimit-remaining')]).toEqual([status, '1'])
    }
  })

  it('a limited fetch handler passes on errors of the handler', async () => {
    const limited = rateLimit({ limiter: setUp(), policy: 'api', subject: () => 'user:1' })
    const handler = limited(() => Promise.reject(new Error('mine')))
    await expect(handler(request())).rejects.toThrow('mine')
  })

  it('a fetch handler cannot be limited without a subject, and the error names it', () => {
    expect(() => rateLimit({ limiter: setUp(), subject: () => 'user:1' } as never)).toThrow(
      expect.objectContaining({ field: 'policy', got: 'undefined' }),
    )
    expect(() => rateLimit({ limiter: setUp(), policy: 'api' } as never)).toThrow(
      /^subject: expected a function/,
    )
  })
})

describe('a fetch handler behind a limiter', () => {
  const rules = [
    ruleOf({
      name: 'login',
      match: { methods: ['POST'], path: '/login' },
      charge: { policy: 'login' },
      headers: 'legacy',
    }),
  ]
  const config = configOf({ policies: { login: perMinute(1) }, rules })

  it('a fetch handler behind a limiter is limited by the rule its request matches, in whatever spelling', async () => {
    const ruled = createLimiter({ config })
    const limited = rateLimit({
      limiter: ruled,
      subject: () => ['user:1', 'ip:192.0.2.1'],
      tier: () => 'pro',
    })
    const handler = limited(() => new Response('hello'))
    const first = await handler(request('/login', { method: 'POST' }))
    expect(first.headers.get('x-ratelimit-limit')).toBe('1')
    expect(first.headers.get('x-ratelimit-tier')).toBe('pro')
    expect(first.headers.get('ratelimit')).toBeNull()
    const denied = await handler(request('/a/%2e%2e/LOGIN/?x=1', { method: 'POST' }))
    expect(denied.status).toBe(429)
    expect((await handler(request('/login'))).headers.get('x-ratelimit-limit')).toBe('100')
  })

  it('a fetch handler behind a limiter lets requests pass when its own functions fail, and says so', async () => {
    const errors: unknown[] = []
    const ruled = createLimiter({ config })
    const subject = (): never => {
      throw new Error('no session')
    }
    const limited = rateLimit({ limiter: ruled, subject, onError: error => errors.push(error) })
    expect((await limited(() => new Response('hello'))(request())).status).toBe(200)
    expect(errors).toHaveLength(1)
  })

  it('a fetch handler rejects where the rule of the request says so, when its own functions fail', async () => {
    const strict = { ...rules[0], onStoreFailure: 'closed' } as (typeof rules)[0]
    const watched = ruleOf({
      name: 'trial',
      match: { path: '/trial' },
      mode: 'shadow',
      onStoreFailure: 'closed',
    })
    const ruled = createLimiter({ config: { ...config, mode: 'enforce', rules: [strict, watched] } })
    const subject = (): never => {
      throw new Error('no session')
    }
    const limited = rateLimit({ limiter: ruled, subject, onError: () => {} })(() => new Response('hello'))
    expect((await limited(request('/login', { method: 'POST' }))).status).toBe(503)
    expect((await limited(request('/a/%2e%2e/LOGIN', { method: 'POST' }))).status).toBe(503)
    expect((await limited(request('/login'))).status).toBe(200)
    expect((await limited(request('/trial'))).status).toBe(200)
    await ruled.control.set({ enabled: false })
    expect((await limited(request('/login', { method: 'POST' }))).status).toBe(200)
    expect(ruled.counts().faults).toBe(2)
    await ruled.close()
  })

  it('a fetch handler rejects something that is not a limiter in its place', () => {
    expect(() => rateLimit({ limiter: {} as RuleLimiter, subject: () => 'user:1' })).toThrow(
      /^limiter: expected what createLimiter/,
    )
  })
})
