/** The decision API beyond a check by name: requests by the rules, peek, refund, reset and inspect. */

import { createLimiter, type RuleLimiter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { redisStore } from 'headgate/redis'
import { createClient } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'
import { changed } from '../../headgate/test/support/changed.ts'
import { startRedis } from '../../headgate/test/support/redis-process.ts'
import { createReferences } from '../src/decision-api/references.js'
import { serveAdmin } from './support/admin-api.js'

const CONFIG = defineConfig({
  policies: {
    api: { algorithm: 'sliding-window-log', limit: 3, window: '1m' },
    login: { algorithm: 'sliding-window-log', limit: 1, window: '1h' },
  },
  tiers: { free: { minute: 5 }, pro: { minute: 50 } },
  default: { policy: 'api' },
  rules: [
    { name: 'login', match: { method: 'POST', path: '/login' }, policy: 'login' },
    { name: 'upload', match: { path: '/upload' }, policy: 'api', scope: 'upload', cost: 2 },
    { name: 'by-tier', match: { path: '/tiered' } },
  ],
})
const LOGIN = { subject: 'user:42', method: 'POST', path: '/login' }
const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function api(limiter: RuleLimiter = createLimiter({ config: CONFIG })) {
  const served = await serveAdmin(limiter)
  cleanUps.push(() => served.close())
  const ask = async (path: string, body: unknown) => {
    const answer = await served.post(path, body)
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  return { ...served, ask }
}

describe('POST /v1/check about a request', () => {
  it('a check about a request is answered by the rules, with the response that a service would give', async () => {
    const { ask } = await api()
    const first = await ask('/v1/check', LOGIN)
    expect(first).toMatchObject({
      status: 200,
      body: { allowed: true, rule: 'login', policy: 'login', status: 200, source: 'memory' },
    })
    expect(first.body.headers).toMatchObject({ 'X-RateLimit-Limit': '1', 'X-RateLimit-Remaining': '0' })
    const second = await ask('/v1/check', LOGIN)
    expect(second).toMatchObject({ status: 200, body: { allowed: false, status: 429, rule: 'login' } })
    expect(second.body.headers).toMatchObject({ 'Retry-After': expect.stringMatching(/^\d+$/) })
  })

  it('a check about a request takes several subjects, the most specific first, and a tier', async () => {
    const { ask } = await api()
    const subject = ['apikey:k1', { type: 'user', id: '42' }, 'ip:192.0.2.1']
    const { body } = await ask('/v1/check', { subject, path: '/tiered', tier: 'pro' })
    expect(body).toMatchObject({ allowed: true, tier: 'pro', limit: 50 })
    expect((await ask('/v1/check', { subject })).body).toMatchObject({ policy: 'api', remaining: 2 })
  })

  it('a check about a request takes the cost from the rule, or from the caller', async () => {
    const { ask } = await api()
    const upload = { subject: 'user:42', path: '/upload' }
    expect((await ask('/v1/check', upload)).body).toMatchObject({ cost: 2, remaining: 1 })
    expect((await ask('/v1/check', { ...upload, cost: 1 })).body).toMatchObject({ cost: 1, remaining: 0 })
  })

  it('a check holds a request to the methods that its headers and its query claim', async () => {
    const { ask } = await api()
    await ask('/v1/check', LOGIN)
    const get = { subject: 'user:42', method: 'GET', path: '/login' }
    expect((await ask('/v1/check', { ...get, claimedMethods: ['post'] })).body.allowed).toBe(false)
    expect((await ask('/v1/check', { ...get, path: '/login?_method=POST' })).body.allowed).toBe(false)
    expect((await ask('/v1/check', get)).body.allowed).toBe(true)
  })

  it('checks about requests mix with checks by name, in their order', async () => {
    const { ask } = await api()
    const { body } = await ask('/v1/check', { checks: [LOGIN, { subject: 'user:42', tier: 'free' }, LOGIN] })
    expect(body).toMatchObject({
      decisions: [
        { rule: 'login', allowed: true },
        { tier: 'free', allowed: true },
        { rule: 'login', allowed: false },
      ],
    })
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['policy', { ...LOGIN, policy: 'api' }, 'expected none beside a method, a path or a list of subjects'],
    ['subject', { ...LOGIN, subject: [] }, 'expected a subject, or a list of 1 to 16; got a list of 0'],
    ['subject[1]', { subject: ['user:1', 'canary'] }, 'expected "type:id"'],
    ['method', { ...LOGIN, method: 7 }, 'expected a non-empty string; got 7'],
    ['path', { ...LOGIN, path: '' }, 'expected a non-empty string; got ""'],
    ['tier', { ...LOGIN, tier: 'gold' }, 'expected one of free, pro; got "gold"'],
    ['claimedMethods', { ...LOGIN, claimedMethods: 'PUT' }, 'expected a list of at most 16 methods'],
    ['claimedMethods', { subject: 'user:1', policy: 'api', claimedMethods: [] }, 'beside a method or a path'],
    ['cost', { ...LOGIN, cost: 2 ** 32 }, 'expected a whole number from 0 to 4294967295'],
    ['refundable', { ...LOGIN, refundable: 'yes' }, 'expected true or false; got "yes"'],
    ['checks[1].path', { checks: [LOGIN, { ...LOGIN, path: 1 }] }, 'expected a non-empty string'],
  ])(
    'a check about a request names %s where it is wrong, and charges nothing',
    async (field, body, detail) => {
      const { ask } = await api()
      const answer = await ask('/v1/check', body)
      expect(answer).toMatchObject({ status: 400, body: { field } })
      expect(answer.body.detail).toContain(detail)
      expect(JSON.stringify(answer.body)).not.toContain('canary')
      expect((await ask('/v1/check', LOGIN)).body.allowed).toBe(true)
    },
  )
})

describe('POST /v1/peek', () => {
  it('a peek says what a check would, by the rules and by name, and charges nothing', async () => {
    const { ask } = await api()
    for (let time = 0; time < 2; time++) {
      expect((await ask('/v1/peek', LOGIN)).body).toMatchObject({ allowed: true, remaining: 1 })
      expect(
        (await ask('/v1/peek', { subject: 'user:42', policy: 'api', refundable: true })).body,
      ).toMatchObject({ allowed: true, remaining: 3 })
    }
    await ask('/v1/check', LOGIN)
    expect((await ask('/v1/peek', LOGIN)).body).toMatchObject({ allowed: false, status: 429 })
  })
})

describe('POST /v1/refund', () => {
  const CHECK = { subject: 'user:42', policy: 'api', cost: 3, refundable: true }

  it('a refund gives back what a check charged, or some of it, and never more', async () => {
    const { ask } = await api()
    const { reference } = (await ask('/v1/check', CHECK)).body
    expect(await ask('/v1/refund', { reference, units: 2 })).toEqual({ status: 200, body: { refunded: 2 } })
    expect((await ask('/v1/peek', CHECK)).body.remaining).toBe(2)
    expect((await ask('/v1/refund', { reference })).body).toEqual({ refunded: 1 })
    expect((await ask('/v1/refund', { reference })).body).toEqual({ refunded: 0 })
    expect((await ask('/v1/peek', CHECK)).body.remaining).toBe(3)
  })

  it('an answer has a reference for refunds only where it was asked for and something was charged', async () => {
    const { ask } = await api()
    expect((await ask('/v1/check', { ...CHECK, refundable: false, cost: 1 })).body).not.toHaveProperty(
      'reference',
    )
    expect((await ask('/v1/check', { ...CHECK, cost: 0 })).body).not.toHaveProperty('reference')
    expect((await ask('/v1/check', CHECK)).body).not.toHaveProperty('reference')
  })

  it('a refund rejects a reference it does not know', async () => {
    const { ask } = await api()
    expect(await ask('/v1/refund', { reference: 'x' })).toMatchObject({
      status: 404,
      body: { field: 'reference' },
    })
    expect(await ask('/v1/refund', {})).toMatchObject({ status: 400, body: { field: 'reference' } })
    const { reference } = (await ask('/v1/check', CHECK)).body
    for (const units of [0, 4, 1.5, '1']) {
      expect(await ask('/v1/refund', { reference, units })).toMatchObject({
        status: 400,
        body: { field: 'units' },
      })
    }
  })

  it('a server forgets the oldest references of refunds', async () => {
    const decision = await createLimiter({ config: CONFIG }).request({ subject: 'user:42' })
    const references = createReferences(2)
    const [first, second, third] = [1, 2, 3].map(() => references.remember(decision))
    expect([first, second, third].map(one => references.find(one as string))).toEqual([
      null,
      decision,
      decision,
    ])
  })
})

describe('POST /v1/release', () => {
  it('a release frees the place that a check took', async () => {
    const config = defineConfig({ policies: { streams: { algorithm: 'concurrency', limit: 1 } } })
    const { ask } = await api(createLimiter({ config }))
    const STREAM = { subject: 'user:42', policy: 'streams' }
    const { reference, allowed } = (await ask('/v1/check', STREAM)).body
    expect([allowed, typeof reference]).toEqual([true, 'string'])
    expect((await ask('/v1/check', STREAM)).body).toMatchObject({ allowed: false, status: 429 })
    expect(await ask('/v1/release', { reference })).toEqual({ status: 200, body: { released: true } })
    expect((await ask('/v1/release', { reference })).status).toBe(200)
    expect((await ask('/v1/check', STREAM)).body.allowed).toBe(true)
    expect(await ask('/v1/release', { reference: 'x' })).toMatchObject({ status: 404 })
  })
})

const OVERRIDE = { tier: 'pro', ttl: '1h', by: 'ada', reason: 'launch' }
const put = async (url: string, body: unknown) => {
  const headers = { 'Content-Type': 'application/json' }
  return fetch(`${url}/v1/overrides`, { method: 'PUT', headers, body: JSON.stringify(body) })
}

describe('GET /v1/usage and POST /v1/credit', () => {
  const PLAN = defineConfig({
    policies: { plan: { algorithm: 'quota', limit: 10, per: 'month' } },
    default: { policy: 'plan' },
  })

  it('usage tells what was used of a quota, and a credit adds to it once', async () => {
    const { ask, url } = await api(createLimiter({ config: PLAN }))
    await ask('/v1/check', { subject: 'user:42', policy: 'plan', cost: 4 })
    const credit = { subject: 'user:42', policy: 'plan', units: 5, id: 'invoice-7' }
    expect(await ask('/v1/credit', credit)).toMatchObject({
      status: 200,
      body: { added: true, quotas: [{ policy: 'plan', used: 4, credits: 5, remaining: 11 }] },
    })
    expect((await ask('/v1/credit', credit)).body).toMatchObject({ added: false, quotas: [{ credits: 5 }] })
    const answer = await fetch(`${url}/v1/usage?subject=user:42`)
    expect(await answer.json()).toMatchObject({ quotas: [{ quota: 'quota-month', used: 4, remaining: 11 }] })
    const trail = await (await fetch(`${url}/v1/changes`)).text()
    expect(trail).toContain('credited 5 units to user:42 (invoice-7)')
  })

  it.each([
    [{ subject: 'user:42', policy: 'plan', units: -5, id: 'a' }, 'units'],
    [{ subject: 'user:42', policy: 'plan', units: 1.5, id: 'a' }, 'units'],
    [{ subject: 'user:42', policy: 'plan', units: 5 }, 'id'],
    [{ subject: 'nobody', policy: 'plan', units: 5, id: 'a' }, 'subject'],
    [{ subject: 'user:42', policy: 'plan', units: 5, id: 'a', until: 'x' }, 'until'],
  ])('a credit of %j is rejected by name', async (body, field) => {
    const { ask } = await api(createLimiter({ config: PLAN }))
    expect(await ask('/v1/credit', body)).toMatchObject({ status: 400, body: { field } })
  })

  it('usage of nobody is rejected by name', async () => {
    const { url } = await api(createLimiter({ config: PLAN }))
    const answer = await fetch(`${url}/v1/usage?subject=nobody`)
    expect([answer.status, ((await answer.json()) as { field: string }).field]).toEqual([400, 'subject'])
  })
})

describe('POST /v1/reset', () => {
  it('a reset forgets what was used of one policy, or of all', async () => {
    const { ask } = await api()
    const named = { subject: 'user:42', policy: 'api' }
    await ask('/v1/check', { ...named, cost: 3 })
    await ask('/v1/check', LOGIN)
    expect(await ask('/v1/reset', named)).toEqual({ status: 200, body: { reset: true } })
    expect((await ask('/v1/peek', named)).body.remaining).toBe(3)
    expect((await ask('/v1/peek', LOGIN)).body.remaining).toBe(0)
    await ask('/v1/reset', { subject: 'user:42' })
    expect((await ask('/v1/peek', LOGIN)).body.remaining).toBe(1)
  })

  it('a reset is written to the trail of changes, without secrets', async () => {
    const { ask, url } = await api()
    await ask('/v1/reset', { subject: 'user:42', policy: 'api' })
    await ask('/v1/reset', { subject: 'apikey:canary' })
    const trail = await (await fetch(`${url}/v1/changes`)).text()
    expect(trail).toContain('reset api of user:42')
    expect(trail).toContain('reset everything of apikey:*')
    expect(trail).not.toContain('canary')
  })

  it('a reset and an override of a type that the file calls secret are written without its id', async () => {
    const limiter = createLimiter({ config: { ...CONFIG, secretTypes: ['license'] } })
    const { ask, url, logged } = await api(limiter)
    await ask('/v1/reset', { subject: 'license:canary' })
    await put(url, { subject: 'license:canary', ...OVERRIDE })
    const about = { headers: { 'Content-Type': 'application/json' }, body: '{"subject":"license:canary"}' }
    await fetch(`${url}/v1/overrides`, { method: 'DELETE', ...about })
    const trail = `${await (await fetch(`${url}/v1/changes`)).text()}${logged.join('\n')}`
    expect(trail.match(/ of license:~/g)).toHaveLength(6)
    expect(trail).not.toContain('canary')
  })

  it('a reset rejects a scope alone, which might mean anything', async () => {
    const { ask } = await api()
    expect(await ask('/v1/reset', { subject: 'user:42', scope: 'upload' })).toMatchObject({
      status: 400,
      body: { field: 'policy' },
    })
  })
})

describe('PUT /v1/overrides', () => {
  it('an override is reported as set and kept in the trail, even if the store is away a moment later', async () => {
    const limiter = createLimiter({ config: CONFIG })
    const read = () => Promise.reject(new Error('the store is away'))
    const { url } = await api(changed(limiter, { overrides: { ...limiter.overrides, read } }))
    const answer = await put(url, { subject: 'user:42', ...OVERRIDE })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ overrides: [{ subject: 'user:42', tier: 'pro' }] })
    expect(await (await fetch(`${url}/v1/changes`)).text()).toContain('set an override of user:42 for 1h')
  })
})

describe('while the store does not answer', () => {
  it('check and peek decide while the store does not answer, and say who did; reset and inspect are 503 with Retry-After', async () => {
    const redis = await startRedis()
    cleanUps.push(() => redis.stop())
    const store = redisStore(createClient({ url: redis.url }), {
      // A busy machine is not a store that is away.
      deadlineMs: 1_000,
      logger: { warn() {}, error() {}, info() {} },
    })
    const limiter = createLimiter({ config: CONFIG, store, onWarning: () => {} })
    cleanUps.push(() => limiter.close())
    await store.ready()
    const { ask, post } = await api(limiter)
    expect((await ask('/v1/check', { ...LOGIN, refundable: true })).body).toMatchObject({ source: 'redis' })
    const { limits } = (await ask('/v1/inspect', { subject: 'user:42' })).body as {
      limits: { key: string }[]
    }
    expect(limits.map(({ key }) => key)).toContain('ratelimit:v2:{user:42}:global:login.log-1h')
    await redis.stop()
    expect(await ask('/v1/check', LOGIN)).toMatchObject({ status: 200, body: { source: 'local' } })
    expect(await ask('/v1/peek', LOGIN)).toMatchObject({ status: 200, body: { source: 'local' } })
    for (const path of ['/v1/reset', '/v1/inspect']) {
      const answer = await post(path, { subject: 'user:42' })
      expect([path, answer.status, answer.headers.get('retry-after')]).toEqual([path, 503, '1'])
    }
  })

  it('a limiter at fault is the failure mode’s, never an error, and says so once', async () => {
    const limiter = createLimiter({ config: CONFIG })
    await limiter.close()
    const { ask, logged } = await api(limiter)
    expect(await ask('/v1/check', LOGIN)).toMatchObject({
      status: 200,
      body: { allowed: true, source: 'open', reason: 'store-unavailable' },
    })
    for (let index = 0; index < 20; index++) await ask('/v1/check', LOGIN)
    expect(logged).toEqual([expect.stringContaining('the limiter failed')])
  })
})
