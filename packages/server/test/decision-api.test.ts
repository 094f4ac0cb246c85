import { createLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { createStatistics } from 'headgate/metrics'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAdminServer } from '../src/admin/admin-server.js'
import type { ConfigCounts } from '../src/admin/probes.js'
import { listen } from '../src/http/listen.js'
import { mergeProcesses } from '../src/metrics/process-counts.js'
import { UpstreamCounts } from '../src/metrics/upstream-counts.js'
import { adminEndpoints } from '../src/service/admin-endpoints.js'
import { lines, rawRequest } from './support/raw-http.js'
import { statsOf } from './support/test-stats.js'

const limiter = createLimiter({
  config: defineConfig({
    policies: { api: slidingWindowLog({ limit: 3, window: '1m' }) },
    tiers: { free: { minute: 5 }, staff: {} },
    default: { tier: 'free' },
  }),
})
const logged: string[] = []
let serving = true
let configState: ConfigCounts = { config: 'current', rejectedConfigs: 0 }
const endpoints = adminEndpoints({
  limiter,
  usagePages: null,
  config: () => defineConfig({}),
  policyText: async () => null,
  stats: statsOf(limiter),
  statistics: createStatistics(),
  upstreams: new UpstreamCounts(),
  answers: () => [],
  tokens: () => [],
  process: () => mergeProcesses([]),
  setControlHere: () => {},
  metricsPublic: false,
  log: line => logged.push(line),
  workers: () => ({ ready: 1, wanted: 1 }),
  arrivals: async () => ({ arrivals: [], share: 1 }),
  isServing: () => serving,
  configState: () => configState,
})
const { server } = createAdminServer({
  endpoints,
  tokens: [],
  names: [],
  log: line => logged.push(line),
})
let url = ''

beforeAll(async () => {
  const permit = { host: '127.0.0.1', port: 0, hostFlag: '--host', portFlag: '--admin-port' }
  url = `http://127.0.0.1:${await listen(server, permit)}`
})

afterAll(async () => {
  server.close()
  server.closeAllConnections()
  expect(logged).toEqual([])
})

function post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/v1/check`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

describe('POST /v1/check answers 200 with the decision', () => {
  it('a check is answered with 200 and the decision, allowed or not', async () => {
    const answers: unknown[] = []
    for (let index = 0; index < 4; index++) {
      const answer = await post({ subject: 'user:42', policy: 'api' })
      expect(answer.status).toBe(200)
      answers.push(await answer.json())
    }
    expect(answers).toMatchObject([
      { allowed: true, limit: 3, remaining: 2, policy: 'api', tier: null, source: 'memory', cost: 1 },
      { allowed: true, remaining: 1 },
      { allowed: true, remaining: 0 },
      { allowed: false, remaining: 0, reason: 'limit-exceeded' },
    ])
  })

  it('a check takes a tier, a scope and a cost, and a subject in two parts', async () => {
    const answer = await post({
      subject: { type: 'user', id: 'a:b' },
      tier: 'free',
      scope: 'upload',
      cost: 4,
    })
    expect(await answer.json()).toMatchObject({ allowed: true, remaining: 1, tier: 'free', cost: 4 })
    const elsewhere = await post({ subject: 'user:a:b', tier: 'free' })
    expect(await elsewhere.json()).toMatchObject({ remaining: 4 })
  })

  it('a decision has null for unlimited stats', async () => {
    const answer = await post({ subject: 'user:9', tier: 'staff' })
    expect(await answer.json()).toMatchObject({
      allowed: true,
      limit: null,
      remaining: null,
      reason: 'unlimited',
    })
  })

  it('each of several checks is answered, in their order', async () => {
    const check = { subject: 'user:several', policy: 'api', cost: 2 }
    const answer = await post({ checks: [check, check, { ...check, cost: 1 }] })
    expect(await answer.json()).toMatchObject({
      decisions: [{ allowed: true }, { allowed: false }, { allowed: true }],
    })
  })
})

describe('POST /v1/check about a request whose caller is named by nobody', () => {
  const allowed = async (subject: unknown, times: number): Promise<number> => {
    let count = 0
    for (let time = 0; time < times; time++) {
      const answer = await post({ subject, method: 'GET', path: '/', tier: 'free' })
      if (((await answer.json()) as { allowed: boolean }).allowed) count++
    }
    return count
  }

  it('a subject without an id leaves the request to the next one, then to one budget for all such', async () => {
    expect(await allowed(['user:', 'user:undefined', { type: 'tenant', id: null }, 'ip:192.0.2.77'], 9)).toBe(
      5,
    )
    expect(await allowed('ip:192.0.2.77', 1)).toBe(0)
    expect(await allowed('user:null', 4)).toBe(4)
    expect(await allowed(['user: ', 'account:'], 4)).toBe(1)
  })

  it('a subject without an id is rejected where a policy is named, and one without a type always', async () => {
    for (const body of [
      { subject: 'user:', policy: 'api' },
      { subject: ['user'], path: '/' },
      { subject: { type: '', id: 'x' }, path: '/' },
    ]) {
      const answer = await post(body)
      expect([answer.status, ((await answer.json()) as { detail: string }).detail]).toEqual([
        400,
        expect.stringMatching(/^subject/),
      ])
    }
  })
})

describe('POST /v1/check answers 400 and names the bad field', () => {
  const sound = { subject: 'user:1', policy: 'api' }
  it.each<[string, unknown, string]>([
    ['body', '{"subject":', 'body: expected JSON; got something else'],
    ['body', [], 'body: expected a JSON object; got a list of 0'],
    ['body', 'null', 'body: expected a JSON object; got nothing'],
    ['subject', { policy: 'api' }, 'no ":" in the type; got none'],
    ['subject', { ...sound, subject: 'user' }, 'no ":" in the type; got a string of 4 characters'],
    [
      'subject',
      { ...sound, subject: { type: 'a:b', id: 'c' } },
      'subject: expected "type:id" or { "type", "id" }, both non-empty and no ":" in the type; got an object',
    ],
    [
      'policy',
      { subject: 'user:1' },
      'policy: expected either a policy or a tier; got neither, and no method or path',
    ],
    ['policy', { ...sound, tier: 'free' }, 'policy: expected either a policy or a tier; got both'],
    ['policy', { ...sound, policy: 'apo' }, 'policy: expected one of api; got "apo"; did you mean "api"?'],
    ['policy', { ...sound, policy: '__proto__' }, 'policy: expected one of api; got "__proto__"'],
    ['tier', { subject: 'user:1', tier: 'gold' }, 'tier: expected one of free, staff; got "gold"'],
    ['scope', { ...sound, scope: '' }, 'scope: expected a non-empty string; got ""'],
    ['cost', { ...sound, cost: '1' }, 'cost: expected a whole number from 0 to 4294967295; got "1"'],
    ['cost', { ...sound, cost: -1 }, 'cost: expected a whole number from 0 to 4294967295; got -1'],
    ['cots', { ...sound, cots: 1 }, 'got "cots"; did you mean "cost"?'],
    ['__proto__', '{"subject":"user:1","policy":"api","__proto__":{}}', '__proto__: expected one of subject'],
    ['checks', { checks: [] }, 'checks: expected a list of 1 to 1000 checks; got a list of 0'],
    ['checks[0]', { checks: [7] }, 'checks[0]: expected a JSON object; got 7'],
    ['subject', { checks: [sound], subject: 'user:1' }, 'subject: expected one of checks'],
  ])('a bad field of a check is 400 and named: %s', async (field, body, detail) => {
    const answer = await post(body)
    expect(answer.status).toBe(400)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    const problem = (await answer.json()) as { [name: string]: string }
    expect(problem).toMatchObject({ type: 'about:blank', title: 'Bad Request', status: 400, field })
    expect(problem.detail).toContain(detail)
    const { expected, got, suggestion } = problem
    const hint = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`
    expect(problem.detail).toBe(`${field}: expected ${expected}; got ${got}${hint}`)
  })

  it('a bad field of a check has what was expected and what came beside it, for programs', async () => {
    const answers = [
      { ...sound, cost: 'a: expected b; got c' },
      { ...sound, policy: 'apo' },
    ].map(body => post(body))
    const [cost, policy] = await Promise.all(answers.map(async answer => (await answer).json()))
    const expected = 'a whole number from 0 to 4294967295'
    expect(cost).toMatchObject({ field: 'cost', expected, got: '"a: expected b; got c"' })
    expect(policy).toMatchObject({ field: 'policy', expected: 'one of api', got: '"apo"', suggestion: 'api' })
  })

  it('a mistake in the last of several checks charges nothing to the first', async () => {
    const first = { subject: 'user:uncharged', policy: 'api' }
    const answer = await post({ checks: [first, { ...first, cost: 0.5 }] })
    expect(await answer.json()).toMatchObject({ status: 400, field: 'checks[1].cost' })
    expect(await (await post(first)).json()).toMatchObject({ remaining: 2 })
  })

  it('an error of a check never repeats a subject, which may be a secret', async () => {
    const answer = await post({ subject: 'sk_live_canary', policy: 'api' })
    expect(await answer.text()).not.toContain('canary')
  })
})

describe('invalid requests are rejected', () => {
  it('a body above 64 KB is 413, whether or not its length is told', async () => {
    const body = JSON.stringify({ subject: `user:${'x'.repeat(70_000)}`, policy: 'api' })
    expect((await post(body)).status).toBe(413)
    const chunked = lines(
      'POST /v1/check HTTP/1.1',
      'Host: localhost',
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    )
    const reply = await rawRequest(url, [chunked, `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`])
    expect(reply.status).toBe(413)
  })

  it('a body that is not JSON is 415', async () => {
    const sound = JSON.stringify({ subject: 'user:1', policy: 'api' })
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', '']) {
      expect((await post(sound, { 'Content-Type': type })).status).toBe(415)
    }
    expect((await post(sound, { 'Content-Type': 'application/json; charset=utf-8' })).status).toBe(200)
  })

  it('a wrong method is 405 with the methods there are, a wrong path 404 with the paths there are', async () => {
    const wrongMethod = await fetch(`${url}/v1/check`)
    expect(wrongMethod.status).toBe(405)
    expect(wrongMethod.headers.get('allow')).toBe('POST')
    const wrongPath = await fetch(`${url}/v1/chek`)
    expect(wrongPath.status).toBe(404)
    expect(await wrongPath.json()).toMatchObject({
      detail: expect.stringMatching(/^expected one of \/v1\/check, .*\/healthz, .*\/v1\/counts/),
    })
  })

  it.each<[number, string[]]>([
    [403, ['Host: evil.example']],
    [403, ['Host: 127.0.0.1.evil.example']],
    [403, ['Host: localhost', 'Origin: http://evil.example']],
    [403, ['Host: localhost', 'Origin: null']],
    [403, ['Host: localhost', 'Sec-Fetch-Site: cross-site']],
    [400, ['Host: localhost', 'Host: localhost']],
    [400, []],
    [200, ['Host: localhost:8082', 'Origin: http://localhost:8082', 'Sec-Fetch-Site: same-origin']],
    [200, ['Host: [::1]:8082']],
  ])('the answer is %i for %j', async (status, headers) => {
    expect((await rawRequest(url, lines('GET /healthz HTTP/1.1', ...headers), 50)).status).toBe(status)
  })
})

it.each(['/readyz', '/healthz'])(
  'GET %s says whether the service takes requests, and whether the policy file is in use',
  async path => {
    const fresh = { config: 'current', rejectedConfigs: 0 }
    expect(await (await fetch(`${url}${path}`)).json()).toEqual({ status: 'ok', ...fresh })
    configState = { config: 'stale', rejectedConfigs: 3 }
    expect(await (await fetch(`${url}${path}`)).json()).toEqual({ status: 'ok', ...configState })
    configState = { config: 'current', rejectedConfigs: 0 }
    serving = false
    const answer = await fetch(`${url}${path}`)
    expect(answer.status).toBe(503)
    expect(await answer.json()).toEqual({ status: 'stopping', ...fresh })
    serving = true
  },
)
