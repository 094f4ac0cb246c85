import { describe, expect, it } from 'vitest'
import { configOf, perMinute, ruleOf } from '../../test/support/gate-config.ts'
import { createGate, type Gate } from '../gate/gate.js'
import { createLimiter } from '../limiter.js'
import { slidingWindowLog } from '../policy/limits.js'
import { defaultTiers } from '../policy/tiers.js'
import { rateLimit } from './fetch.js'

const request = (path = '/', init?: RequestInit): Request => new Request(`http://localhost${path}`, init)

function setUp() {
  return createLimiter({
    policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) },
    tiers: defaultTiers,
  })
}

describe('a limited fetch handler', () => {
  it('answers until the limit, then 429 with the problem and without running', async () => {
    let ran = 0
    const limited = rateLimit({ limiter: setUp(), policy: 'api', subject: () => 'user:1' })
    const handler = limited(() => {
      ran++
      return new Response('hello', { status: 201, headers: { 'X-Own': 'yes' } })
    })
    const first = await handler(request())
    expect([first.status, await first.text(), first.headers.get('x-own')]).toEqual([201, 'hello', 'yes'])
    expect(first.headers.get('x-ratelimit-remaining')).toBe('1')
    expect(first.headers.get('ratelimit')).toMatch(/r=1/)
    await handler(request())
    const denied = await handler(request())
    expect(denied.status).toBe(429)
    expect(denied.headers.get('content-type')).toBe('application/problem+json')
    expect(denied.headers.get('cache-control')).toBe('no-store')
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await denied.json()).toMatchObject({ status: 429, policy: 'api', remaining: 0 })
    expect(ran).toBe(2)
  })

  it('takes tier and cost from the request, and hands on what else the runtime gives', async () => {
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

  it('keeps headers and body of a response that cannot be changed', async () => {
    const limited = rateLimit({ limiter: setUp(), policy: 'api', subject: () => 'user:1' })
    const redirected = await limited(() => Response.redirect('http://localhost/there', 302))(request())
    expect([redirected.status, redirected.headers.get('location')]).toEqual([302, 'http://localhost/there'])
    expect(redirected.headers.get('x-ratelimit-limit')).toBe('2')
  })

  it('lets the request pass when the limiter is at fault, and tells', async () => {
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

  it('leaves the faults of the handler to the handler', async () => {
    const limited = rateLimit({ limiter: setUp(), policy: 'api', subject: () => 'user:1' })
    const handler = limited(() => Promise.reject(new Error('mine')))
    await expect(handler(request())).rejects.toThrow('mine')
  })

  it('refuses to be made without a subject, by name', () => {
    expect(() => rateLimit({ limiter: setUp(), policy: 'api' } as never)).toThrow(
      /^subject: expected a function/,
    )
  })
})

describe('a fetch handler behind a gate', () => {
  const rules = [
    ruleOf({
      name: 'login',
      match: { methods: ['POST'], path: '/login' },
      charge: { policy: 'login' },
      headers: 'legacy',
    }),
  ]
  const config = configOf({ policies: { login: perMinute(1) }, rules })

  it('is limited by the rule its request matches, in whatever spelling', async () => {
    const gate = createGate({ config })
    const limited = rateLimit({ gate, subject: () => ['user:1', 'ip:192.0.2.1'], tier: () => 'pro' })
    const handler = limited(() => new Response('hello'))
    const first = await handler(request('/login', { method: 'POST' }))
    expect(first.headers.get('x-ratelimit-limit')).toBe('1')
    expect(first.headers.get('x-ratelimit-tier')).toBe('pro')
    expect(first.headers.get('ratelimit')).toBeNull()
    const denied = await handler(request('/a/%2e%2e/LOGIN/?x=1', { method: 'POST' }))
    expect(denied.status).toBe(429)
    expect((await handler(request('/login'))).headers.get('x-ratelimit-limit')).toBe('100')
  })

  it('passes when its own functions fail, and says so', async () => {
    const errors: unknown[] = []
    const gate = createGate({ config })
    const subject = (): never => {
      throw new Error('no session')
    }
    const limited = rateLimit({ gate, subject, onError: error => errors.push(error) })
    expect((await limited(() => new Response('hello'))(request())).status).toBe(200)
    expect(errors).toHaveLength(1)
  })

  it('refuses something else for a gate', () => {
    expect(() => rateLimit({ gate: {} as Gate, subject: () => 'user:1' })).toThrow(
      /^gate: expected what createGate/,
    )
  })
})
