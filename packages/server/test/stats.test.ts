/** The stats over HTTP, of a limiter in this process whose seconds elapse on command. */
import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { createLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { referenceOf } from 'headgate/internal'
import { createStatistics } from 'headgate/metrics'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAdminServer } from '../src/admin/admin-server.js'
import type { Endpoint } from '../src/admin/endpoint.js'
import { listen } from '../src/http/listen.js'
import type { HttpAnswer } from '../src/http/problem.js'
import { mergeProcesses } from '../src/metrics/process-counts.js'
import { UpstreamCounts } from '../src/metrics/upstream-counts.js'
import { DEFAULT_RULES } from '../src/observe/alert-rules.js'
import { AlertWatch } from '../src/observe/alert-watch.js'
import { maskSubject } from '../src/observe/mask-subject.js'
import { statsEndpoints } from '../src/observe/stats-endpoints.js'
import { adminEndpoints } from '../src/service/admin-endpoints.js'
import { statsOf } from './support/test-stats.js'

let work = (): void => {}
const keep = (_: number, next: () => void) => {
  work = next
  return () => {}
}
const tick = () => work()
const statistics = createStatistics({ sampleArrivals: true, timers: { after: keep, inBackground: keep } })
const config = defineConfig({
  policies: { api: slidingWindowLog({ limit: 3, window: '1m' }) },
  tiers: { free: { minute: 5 }, big: { minute: 50 } },
  default: { tier: 'free' },
  rules: [{ name: 'all', match: { path: '/api' }, policy: 'api' }],
})
const ruled = createLimiter({ statistics, config })
const stats = statsOf(ruled, statistics)
const endpoints = adminEndpoints({
  upstreams: new UpstreamCounts(),
  process: () => mergeProcesses([]),
  setControlHere: () => {},
  limiter: ruled,
  usagePages: null,
  config: () => config,
  policyText: async () => null,
  stats,
  statistics,
  log: () => {},
  answers: () => [],
  tokens: () => [],
  metricsPublic: false,
  isServing: () => true,
  workers: () => ({ ready: 1, wanted: 1 }),
  arrivals: async () => statistics.arrivals(),
  configState: () => ({ config: 'current', rejectedConfigs: 0 }),
})
const { server } = createAdminServer({ endpoints, tokens: [], names: [], log: () => {} })
let url = ''

beforeAll(async () => {
  const place = { host: '127.0.0.1', port: 0, hostFlag: '--host', portFlag: '--admin-port' }
  url = `http://127.0.0.1:${await listen(server, place)}`
})

afterAll(async () => {
  stats.close()
  server.close()
  server.closeAllConnections()
  await ruled.close()
})

async function get(path: string) {
  const response = await fetch(`${url}${path}`)
  return { status: response.status, body: (await response.json()) as never as Record<string, unknown> }
}

async function send(method: string, path: string, body: unknown = {}) {
  const headers = { 'Content-Type': 'application/json' }
  const response = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as never as Record<string, unknown> }
}

describe('GET /v1/stats', () => {
  it('the statistics say what was allowed and denied, by whom and whose', async () => {
    for (let index = 0; index < 5; index++) await ruled.request({ subject: 'ip:203.0.113.9', path: '/api' })
    await ruled.request({ subject: 'user:alice-smith', path: '/elsewhere' })
    tick()
    const { body } = await get('/v1/stats')
    expect(body).toMatchObject({
      scope: 'process',
      totals: { allowed: 4, denied: 2 },
      now: { denialRate: 2 / 6 },
      deniedCallers: [
        { subject: 'ip:203.0.…', reference: referenceOf('ip:203.0.113.9'), denied: 2, policy: 'api' },
      ],
      store: { kind: 'memory', state: 'up', availability: null, breakers: [] },
      control: { enabled: true, multiplier: 1 },
      overrides: 0,
      config: {
        state: 'current',
        reloads: 0,
        version: expect.stringMatching(/^[0-9a-f]{8}$/),
        loadedAtMs: expect.any(Number),
      },
    })
    const names = (rows: unknown) => (rows as { name: string }[]).map(({ name }) => name)
    expect(names(body.byPolicy)).toEqual(['api', 'tier'])
    expect(names(body.bySource)).toEqual(['memory'])
    expect(names(body.byRule)).toContain('all')
    expect(JSON.stringify(body)).not.toContain('203.0.113.9')
    expect(JSON.stringify(body)).not.toContain('alice')
  })

  it('the history has a point for the second', async () => {
    const { body } = await get('/v1/stats/history?seconds=5')
    expect(body).toMatchObject({ stepMs: 1_000, points: [{ allowed: 4, denied: 2, storeErrors: 0 }] })
    expect((await get('/v1/stats/history?seconds=x')).status).toBe(400)
  })

  it('the stream sends statistics at once and then one a second', async () => {
    const response = await fetch(`${url}/v1/stats/stream`)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    let text = ''
    const until = async (count: number) => {
      while (text.split('event: stats').length - 1 < count) {
        const { value } = await reader.read()
        text += new TextDecoder().decode(value)
      }
    }
    await until(1)
    tick()
    await until(2)
    expect(text).toMatch(/^retry: 2000\n\nevent: stats\nid: \d+\ndata: \{"atMs"/)
    await reader.cancel()
  })

  it('the stream reports an alert once when it begins and once when it is over', async () => {
    let ownTick = (): void => {}
    const keepOwn = (_: number, next: () => void) => {
      ownTick = next
      return () => {}
    }
    const rule = { threshold: 0.1, holdMs: 0, resolveMs: 0 }
    const alerts = new AlertWatch({
      rules: { ...DEFAULT_RULES, 'denial-rate': rule },
      tell() {},
      unixMs: Date.now,
    })
    const own = createStatistics({ timers: { after: keepOwn, inBackground: keepOwn } })
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) },
      statistics: own,
    })
    const watched = statsOf(ruled, own, { alerts })
    const heard: string[] = []
    const { methods } = statsEndpoints(watched).find(({ path }) => path === '/v1/stats/stream') as Endpoint
    const answer = methods.GET?.answer({} as never, { name: null, role: 'administer' }) as HttpAnswer
    const client = new PassThrough().on('data', text => heard.push(`${text}`))
    answer.stream?.(client as never)
    for (let asked = 0; asked < 100; asked++) await limiter.check('user:1', { policy: 'api' })
    ownTick()
    ownTick()
    for (let asked = 0; asked < 2_000; asked++) await limiter.check(`user:${asked}`, { policy: 'api' })
    ownTick()
    ownTick()
    ownTick()
    await setImmediate()
    const told = heard.join('').match(/event: alert\ndata: .*/g) ?? []
    expect(told.map(text => JSON.parse(text.slice(text.indexOf('{'))))).toMatchObject([
      { id: 'denial-rate', state: 'firing' },
      { id: 'denial-rate', state: 'resolved' },
    ])
    client.destroy()
    watched.close()
    await limiter.close()
  })
})

describe('a deniedCaller', () => {
  const reference = referenceOf('ip:203.0.113.9')

  it('a deniedCaller is among the kept denials by its reference and by the id of the request', async () => {
    const requestId = 'req-4711'
    const facts = { subject: 'ip:203.0.113.9', method: 'POST', path: '/api?token=secret', requestId } as const
    await ruled.request(facts)
    tick()
    const denial = { reference: reference, subject: 'ip:203.0.…', policy: 'api', rule: 'all' }
    const { body } = await get(`/v1/denials?reference=${reference}&limit=2`)
    const request = { method: 'POST', path: '/api', requestId }
    expect(body).toMatchObject({ denials: [{ ...denial, ...request, source: 'memory' }, denial] })
    expect((await get('/v1/denials?requestId=req-4711')).body.denials).toHaveLength(1)
    expect((await get('/v1/denials?policy=other')).body).toEqual({ denials: [] })
  })

  it.each([
    ['ip:198.51.100.7', 'ip:198.51.…'],
    // Kept as a digest, which the reference leads to.
    ['apikey:k-1234567890', expect.stringMatching(/^apikey:/)],
  ] as const)(
    'a deniedCaller can be inspected, overridden and reset by the reference alone: %s',
    async (subject, shown) => {
      const caller = { subject }
      for (let index = 0; index < 9; index++) await ruled.request(caller)
      tick()
      const other = referenceOf(ruled.nameOf(subject))
      const { body } = await get(`/v1/subjects/${other}`)
      expect(body).toMatchObject({ subject: shown, reference: other, overrides: [] })
      expect(body.limits).toContainEqual(expect.objectContaining({ name: 'tier.log-1m', remaining: 0 }))
      const override = { tier: 'big', ttl: '10m', reason: 'appeal', by: 'ada' }
      expect((await send('PUT', '/v1/overrides', { subject: other, ...override })).status).toBe(200)
      expect((await ruled.request(caller)).allowed).toBe(true)
      const stats = (await get('/v1/stats')).body
      expect(stats).toMatchObject({ overrides: 1 })
      expect(stats.deniedCallers).toContainEqual(
        expect.objectContaining({ reference: other, overridden: true }),
      )
      expect((await send('DELETE', '/v1/overrides', { subject: other })).body).toEqual({ removed: true })
      expect((await ruled.request(caller)).allowed).toBe(false)
      expect((await send('POST', `/v1/subjects/${other}/reset`)).body).toEqual({ reset: true })
      expect((await ruled.request(caller)).allowed).toBe(true)
    },
  )

  it('a mask holds also for a name with characters that are shown as something else', async () => {
    const subject = 'user:ann\u0001e@example.com'
    for (let index = 0; index < 9; index++) await ruled.request({ subject })
    tick()
    const { body } = await get(`/v1/subjects/${referenceOf(subject)}`)
    expect(body.limits).toContainEqual(expect.objectContaining({ subject: 'user:an…' }))
    expect(JSON.stringify(body)).not.toContain('example.com')
  })

  it('a deniedCaller is found by its name just as well; a reference nobody has is not found', async () => {
    expect((await get('/v1/subjects/user%3A7')).body).toMatchObject({ subject: 'user:…' })
    expect((await get('/v1/subjects/aaaaaaaaaaaa')).status).toBe(404)
    expect((await get('/v1/subjects/nonsense')).status).toBe(400)
    expect((await get('/v1/subjects/%zz')).status).toBe(400)
    expect((await get(`/v1/subjects/${reference}/else`)).status).toBe(404)
  })
})

it.each([
  ['ip:203.0.113.9', 'ip:203.0.…'],
  ['ip:2001:db8:1:2::/64', 'ip:2001:db8:…'],
  ['user:42', 'user:…'],
  ['user:alice-smith', 'user:al…'],
  ['apikey:~0123456789abcdef', 'apikey:~012345678…'],
  ['tenant:acme:inc', 'tenant:ac…'],
])('%s is shown as %s', (subject, shown) => {
  expect(maskSubject(subject, { byType: {}, others: 'part' })).toBe(shown)
})

it.each([
  ['user:alice', 'user:…'],
  ['tenant:acme', 'tenant:acme'],
  ['ip:203.0.113.9', 'ip:203.0.…'],
  ['constructor:name-of-somebody', 'constructor:na…'],
])('%s is shown by masks of the policy file as %s', (subject, shown) => {
  expect(maskSubject(subject, { byType: { user: 'hidden', tenant: 'whole' }, others: 'part' })).toBe(shown)
})

describe('POST /v1/find', () => {
  const find = async (text: string) => {
    const { body } = await send('POST', '/v1/find', { text })
    return body.matches as Record<string, unknown>[]
  }

  it('a caller is found by its name, address, key, reference and request id, and never named in the answer', async () => {
    const requestId = 'req-find'
    for (let index = 0; index < 9; index++) {
      await ruled.request({ subject: 'ip:198.51.100.77', path: '/x', requestId })
      await ruled.request({ subject: 'apikey:k-abcdefgh', path: '/x' })
    }
    tick()
    const [address] = await find('198.51.100.77')
    expect(address).toMatchObject({ subject: 'ip:198.51.…', denied: 4, isActive: true, overridden: false })
    expect(address?.lastDenial).toMatchObject({ path: '/x', requestId, rule: 'default' })
    for (const text of ['ip:198.51.100.77', `${address?.reference}`, requestId]) {
      expect(await find(text), text).toEqual([address])
    }
    const [key, ...others] = await find('k-abcdefgh')
    expect(key).toMatchObject({ subject: expect.stringMatching(/^apikey:~/), denied: 4, isActive: true })
    expect(others).toEqual([])
    expect(JSON.stringify([address, key])).not.toMatch(/198\.51\.100|k-abcdefgh/)
  })

  it('a caller that was never seen is found all the same, under each type it may have', async () => {
    const found = await find('nobody-yet')
    expect(found.map(({ subject }) => `${subject}`.split(':')[0])).toContain('user')
    expect(found.every(({ denied, isActive }) => denied === 0 && isActive === false)).toBe(true)
    const { status, body } = await get(`/v1/subjects/${found[0]?.reference}`)
    expect([status, body.denials]).toEqual([200, []])
    expect((await send('POST', '/v1/find', { text: ' ' })).status).toBe(400)
    expect((await send('POST', '/v1/find', { text: 'x'.repeat(2_000) })).status).toBe(400)
  })

  it('an address is revealed to who may administer, which is written down; a key never is', async () => {
    const [address, key] = [await find('ip:198.51.100.77'), await find('apikey:k-abcdefgh')].map(
      ([one]) => one,
    )
    expect((await get(`/v1/subjects/${address?.reference}`)).body.isRevealable).toBe(true)
    const { body } = await send('POST', `/v1/subjects/${address?.reference}/reveal`)
    expect(body).toEqual({ subject: 'ip:198.51.100.77' })
    expect((await get(`/v1/subjects/${key?.reference}`)).body.isRevealable).toBe(false)
    expect((await send('POST', `/v1/subjects/${key?.reference}/reveal`)).status).toBe(409)
    const [change] = (await get('/v1/changes')).body.changes as { what: string }[]
    expect(change?.what).toBe(`revealed the name of ip:198.51.…, reference ${address?.reference}`)
  })

  it('a ban denies a caller whatever rule it meets, and is over when its override is removed', async () => {
    const subject = 'user:banned-one'
    const [found] = await find(subject)
    const path = `/v1/subjects/${found?.reference}`
    expect((await send('POST', `${path}/ban`, { ttl: 'x', reason: 'abuse', by: 'ada' })).status).toBe(400)
    expect((await get(path)).body.overrides).toEqual([])
    const { body } = await send('POST', `${path}/ban`, { ttl: '1h', reason: 'abuse', by: 'ada' })
    expect(body).toEqual({ banned: true })
    for (const asked of ['/api', '/elsewhere']) {
      expect(await ruled.request({ subject, path: asked }), asked).toMatchObject({ reason: 'banned' })
    }
    expect((await get(path)).body.overrides).toMatchObject([{ ban: true, by: 'ada', reason: 'abuse' }])
    await send('DELETE', '/v1/overrides', { subject: found?.reference, ban: true })
    expect(await ruled.request({ subject, path: '/api' })).toMatchObject({ allowed: true })
  })
})

describe('the policy', () => {
  it('the policy shows its tiers and rules in order, with what they decided and denied', async () => {
    for (let index = 0; index < 5; index++) await ruled.request({ subject: 'user:counted', path: '/api' })
    tick()
    const { body } = await get('/v1/policy')
    expect(body).toMatchObject({
      version: expect.stringMatching(/^[0-9a-f]{8}$/),
      state: 'current',
      default: 'tier free',
      tiers: [
        { name: 'free', numbers: { minute: 5 } },
        { name: 'big', numbers: { minute: 50 } },
      ],
      policies: [{ name: 'api', limits: [expect.stringContaining('3')], mode: 'enforce' }],
      rules: [{ name: 'all', match: '/api', charges: 'policy api', mode: 'enforce' }],
      versions: [{ version: body.version, processes: 1 }],
    })
    const [rule] = body.rules as { decided: number; denied: number }[]
    expect(rule?.denied).toBeGreaterThanOrEqual(2)
    expect(rule?.decided).toBeGreaterThanOrEqual((rule?.denied ?? 0) + 3)
    expect((await get('/v1/policy/text')).status).toBe(404)
  })

  it('a policy on trial is validated, explained and replayed, and changes nothing', async () => {
    for (let index = 0; index < 3; index++) await ruled.request({ subject: 'user:replayed', path: '/api' })
    const text = (
      limit: number,
    ) => `policies: { api: { algorithm: sliding-window-log, limit: ${limit}, window: 1m } }
tiers: { free: { minute: 5 } }
default: { tier: free }
rules: [{ name: all, match: { path: /api }, policy: api }]
`
    const request = { subject: 'user:1', method: 'GET', path: '/api' }
    const before = (await get('/v1/policy')).body.version
    const { body } = await send('POST', '/v1/policy/try', { text: text(2), request })
    expect(body).toMatchObject({ issues: [], explanation: expect.stringContaining('rule all') })
    const replay = body.replay as Record<string, Record<string, number>> & { newlyDenied: object[] }
    expect(replay.after?.denied).toBeGreaterThan(replay.before?.denied ?? 0)
    expect(replay.newlyDenied).toContainEqual({
      subject: 'user:re…',
      reference: referenceOf('user:replayed'),
      denied: 1,
    })
    expect((await get('/v1/policy')).body.version).toBe(before)
    const same = await send('POST', '/v1/policy/try', { text: text(3) })
    expect(same.body.replay).toMatchObject({ newlyDeniedCount: 0, noLongerDeniedCount: 0 })
    const wrong = await send('POST', '/v1/policy/try', { text: `${text(2)}ruels: []\n` })
    expect(wrong.body).toMatchObject({ issues: [{ line: 5, path: 'ruels' }], version: null, replay: null })
    expect((await send('POST', '/v1/policy/try', { text: 'a: [' })).body.issues).not.toEqual([])
    expect((await send('POST', '/v1/policy/try', { text: 5 })).status).toBe(400)
    expect((await send('POST', '/v1/policy/try', { text: 'x'.repeat(1_600_000) })).status).toBe(413)
  })
})
