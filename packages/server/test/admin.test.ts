/** Tests who may call the admin port, and what they get (promises S22 to S24). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { createClientAddress } from 'headgate/identify'
import { createStatistics } from 'headgate/metrics'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { createAdminServer } from '../src/admin/admin-server.js'
import { checks, type Endpoint, may, ROLES } from '../src/admin/endpoint.js'
import type { Token } from '../src/admin/tokens.js'
import { listen } from '../src/http/listen.js'
import { jsonAnswer } from '../src/http/problem.js'
import { mergeProcesses } from '../src/metrics/process-counts.js'
import { UpstreamCounts } from '../src/metrics/upstream-counts.js'
import { adminEndpoints } from '../src/service/admin-endpoints.js'
import { type HeadgateProcess, serveHeadgate, serveHeadgateIn } from './support/headgate-process.js'
import { lines, rawRequest } from './support/raw-http.js'
import { runInProcess } from './support/run-in-process.js'
import { statsOf } from './support/test-stats.js'

const SECRETS = {
  check: 'secret-of-the-check-role',
  read: 'secret-of-the-read-role',
  administer: 'secret-of-the-administer-role',
}
const TOKENS = ROLES.map(role => ({ name: `the-${role}`, role, secret: SECRETS[role] }))
const readerOf = (index: number): Token => ({
  name: `reader-${index}`,
  role: 'read',
  secret: `${SECRETS.read}-${index}`,
})
const folder = mkdtempSync(join(tmpdir(), 'headgate-admin-'))
for (const role of ROLES) writeFileSync(join(folder, role), `${SECRETS[role]}\n`)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const RELAY: Endpoint = {
  path: '/v1/forward-auth',
  isRelay: true,
  methods: { GET: checks(() => jsonAnswer(200, {})) },
}

async function admin({
  metricsPublic = false,
  relay = false,
  readers = 0,
  names = [] as string[],
  trustedProxies = [] as string[],
} = {}) {
  const limiter = createLimiter({ config: defineConfig({}) })
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
    metricsPublic,
    log: () => {},
    workers: () => ({ ready: 1, wanted: 1 }),
    arrivals: async () => ({ arrivals: [], share: 1 }),
    isServing: () => true,
    configState: () => ({ config: 'current', rejectedConfigs: 0 }),
  })
  const clientAddress = createClientAddress({ trustedProxies })
  const { server } = createAdminServer({
    endpoints: relay ? [...endpoints, RELAY] : endpoints,
    tokens: [...TOKENS, ...Array.from({ length: readers }, (_, index) => readerOf(index))],
    names,
    log: () => {},
    clientAddress: () => clientAddress,
  })
  const port = await listen(server, { host: '127.0.0.1', port: 0, hostFlag: '', portFlag: '' })
  closers.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${port}`, endpoints }
}

function bearer(secret: string): { headers: Record<string, string> } {
  return { headers: { Authorization: `Bearer ${secret}` } }
}

const OPEN = ['/livez', '/readyz', '/healthz']
const everyMethod = (endpoints: readonly Endpoint[]) =>
  endpoints.flatMap(({ path, methods }) =>
    Object.entries(methods).map(([name, method]) => ({ path, name, method })),
  )

describe('with tokens', () => {
  it('everything but liveness and readiness needs a token, and those two say no more than the status', async () => {
    const { url, endpoints } = await admin()
    for (const { path, name } of everyMethod(endpoints)) {
      const answer = await fetch(`${url}${path}`, { method: name })
      if (!OPEN.includes(path)) {
        expect(answer.status).toBe(401)
        expect(answer.headers.get('www-authenticate')).toContain('Bearer')
      } else if (name === 'GET') expect(await answer.json()).toEqual({ status: 'ok' })
      else expect(answer.status).toBe(200)
    }
    for (const path of ['/', '/v1', '/dashboard', '/v1/check/', '/metrics?x']) {
      expect((await fetch(`${url}${path}`)).status).toBe(401)
    }
    expect((await fetch(`${url}/v1/check`, { method: 'DELETE' })).status).toBe(401)
  })

  it('a role reaches what it is for, and the one that administers everything', async () => {
    const { url, endpoints } = await admin()
    for (const { path, name, method } of everyMethod(endpoints)) {
      for (const { role, secret } of TOKENS) {
        const { status } = await fetch(`${url}${path}`, { method: name, ...bearer(secret) })
        if (method.needs === null || may({ name: '', role }, method.needs)) expect(status).not.toBe(403)
        else expect([path, name, role, status]).toEqual([path, name, role, 403])
      }
    }
  })

  it('details of readiness are for those who may read', async () => {
    const { url } = await admin()
    const details = { status: 'ok', config: 'current', rejectedConfigs: 0 }
    expect(await (await fetch(`${url}/readyz`, bearer(SECRETS.read))).json()).toEqual(details)
    expect(await (await fetch(`${url}/readyz`, bearer(SECRETS.check))).json()).toEqual({ status: 'ok' })
  })

  it('metrics may be made public, and nothing else with them', async () => {
    const { url } = await admin({ metricsPublic: true })
    expect((await fetch(`${url}/metrics`)).status).toBe(200)
    expect((await fetch(`${url}/v1/counts`)).status).toBe(401)
  })

  it.each([
    ['one character more', [`Authorization: Bearer ${SECRETS.read}x`]],
    ['one character less', [`Authorization: Bearer ${SECRETS.read.slice(0, -1)}`]],
    ['nothing', ['Authorization:']],
    ['an empty token', ['Authorization: Bearer ']],
    ['another scheme', [`Authorization: Basic ${SECRETS.read}`]],
    ['two headers', [`Authorization: Bearer ${SECRETS.read}`, `Authorization: Bearer ${SECRETS.read}`]],
    ['a list', [`Authorization: Bearer ${SECRETS.read}, Bearer ${SECRETS.read}`]],
    ['2,000 characters', [`Authorization: Bearer ${'x'.repeat(2_000)}`]],
    ['a token in the query', []],
  ])('a call with %s is 401', async (_what, headers) => {
    const { url } = await admin()
    const target = `/v1/counts?token=${SECRETS.read}`
    const reply = await rawRequest(url, lines(`GET ${target} HTTP/1.1`, 'Host: localhost', ...headers), 50)
    expect(reply.status).toBe(401)
    expect(reply.text).not.toContain(SECRETS.read)
  })

  it('no number of wrong tokens keeps a right one out; an address gets 429 from its 21st in a minute (S48)', async () => {
    const { url } = await admin()
    const wrong = () => fetch(`${url}/v1/counts`, bearer('a-token-that-nobody-has'))
    const right = () => fetch(`${url}/v1/counts`, bearer(SECRETS.read)).then(({ status }) => status)
    const statuses: number[] = []
    for (let index = 0; index < 25; index++) {
      statuses.push((await wrong()).status)
      expect(await right()).toBe(200)
    }
    expect(statuses).toEqual([...new Array(20).fill(401), ...new Array(5).fill(429)])
    const rejected = await wrong()
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThan(50)
    expect(Number(rejected.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    // Probes send no token, and still work.
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
  })

  it('forward-auth, whose token is in a header of its own, goes by the same', async () => {
    const { url } = await admin({ relay: true })
    const ask = (secret: string) =>
      fetch(`${url}/v1/forward-auth`, { headers: { 'Headgate-Token': secret } }).then(({ status }) => status)
    const statuses: number[] = []
    for (let index = 0; index < 22; index++) statuses.push(await ask('a-token-that-nobody-has'))
    expect(statuses).toEqual([...new Array(20).fill(401), 429, 429])
    expect(await ask(SECRETS.check)).toBe(200)
  })

  it('behind a trusted proxy an address is the client’s; from anybody else the header is only a claim', async () => {
    const wrongFrom = (url: string) => async (address: string) => {
      const headers = { ...bearer('nobody-has-it').headers, 'X-Forwarded-For': address }
      return (await fetch(`${url}/v1/counts`, { headers })).status
    }
    const trusting = wrongFrom((await admin({ trustedProxies: ['127.0.0.1'] })).url)
    for (let index = 0; index < 20; index++) expect(await trusting('203.0.113.1')).toBe(401)
    expect(await trusting('203.0.113.1')).toBe(429)
    expect(await trusting('198.51.100.7, 203.0.113.1')).toBe(429)
    expect(await trusting('203.0.113.2')).toBe(401)
    const untrusting = wrongFrom((await admin()).url)
    for (let index = 0; index < 20; index++) expect(await untrusting(`203.0.113.${index}`)).toBe(401)
    expect(await untrusting('203.0.113.99')).toBe(429)
  })

  it('beyond 1,000 wrong tokens a minute in all every wrong one is 429, and right ones pass', async () => {
    const { url } = await admin({ trustedProxies: ['127.0.0.1'] })
    const wrongFrom = async (client: number) => {
      const address = `10.0.${client >> 8}.${client & 255}`
      const headers = { ...bearer('nobody-has-it').headers, 'X-Forwarded-For': address }
      const { status } = await fetch(`${url}/v1/counts`, { headers })
      return status
    }
    const first: number[] = []
    for (let client = 0; client < 1_000; client++) first.push(await wrongFrom(client))
    expect(new Set(first)).toEqual(new Set([401]))
    expect(await wrongFrom(5_000)).toBe(429)
    expect(await wrongFrom(5_001)).toBe(429)
    expect((await fetch(`${url}/v1/counts`, bearer(SECRETS.administer))).status).toBe(200)
  })

  it('a token that opens every event stream it may shuts out neither others nor an administrator (S51)', async () => {
    const { url } = await admin({ readers: 3 })
    // A response that nobody refers to is closed when it is collected.
    const responses: Response[] = []
    closers.push(() => responses.splice(0))
    const open = async (secret: string): Promise<[number, () => void]> => {
      const closer = new AbortController()
      const response = await fetch(`${url}/v1/stats/stream`, { ...bearer(secret), signal: closer.signal })
      responses.push(response)
      return [response.status, () => closer.abort()]
    }
    const statusesOf = async (secret: string, count: number) => {
      const opened = await Promise.all(Array.from({ length: count }, () => open(secret)))
      closers.push(() => opened.map(([, close]) => close()))
      const streams = opened.filter(([status]) => status === 200)
      const statuses = new Set(opened.map(([status]) => status))
      return { open: streams.length, statuses, closeOne: () => streams[0]?.[1]() }
    }
    const greedy = await statusesOf(SECRETS.read, 100)
    expect(greedy.open).toBe(25)
    expect(greedy.statuses).toEqual(new Set([200, 429]))
    expect((await statusesOf(`${SECRETS.read}-0`, 25)).open).toBe(25)
    expect((await statusesOf(`${SECRETS.read}-1`, 25)).open).toBe(25)
    expect((await open(`${SECRETS.read}-2`))[0]).toBe(503)
    expect((await statusesOf(SECRETS.administer, 30)).open).toBe(25)
    // A place that was given back is free.
    greedy.closeOne()
    await expect.poll(async () => (await statusesOf(SECRETS.read, 1)).open).toBe(1)
  })

  it.each<[number, string[], string[]]>([
    [403, ['Host: evil.example'], []],
    [403, ['Host: 10.0.0.1.evil.example'], []],
    [403, ['Host: headgate.internal'], []],
    [200, ['Host: headgate.internal:8082'], ['headgate.internal']],
    [200, ['Host: 10.0.0.1:8082'], []],
    [200, ['Host: [fd00::1]:8082'], []],
    [403, ['Host: 10.0.0.1:8082', 'Origin: http://10.0.0.2:8082'], []],
    [403, ['Host: localhost:8082', 'Origin: http://localhost:3000'], []],
    [200, ['Host: 10.0.0.1:8082', 'Origin: http://10.0.0.1:8082'], []],
    [403, ['Host: localhost', 'Sec-Fetch-Site: cross-site'], []],
    [403, ['Host: localhost', 'Sec-Fetch-Site: same-site'], []],
  ])('the answer is %i for %j when the server may be called %j', async (status, headers, names) => {
    const { url } = await admin({ names })
    const token = `Authorization: Bearer ${SECRETS.read}`
    const reply = await rawRequest(url, lines('GET /v1/counts HTTP/1.1', ...headers, token), 50)
    expect(reply.status).toBe(status)
    expect(reply.text).not.toMatch(/access-control/i)
  })
})

describe('headgate serve', () => {
  async function serve(...args: string[]): Promise<HeadgateProcess> {
    const running = await serveHeadgate('--demo', ...args)
    closers.push(() => running.child.kill('SIGKILL'))
    return running
  }

  it('serve listens elsewhere with tokens, whose names stand in the audit trail', async () => {
    const { adminUrl, stdout } = await serve(
      ...['--admin-host', '0.0.0.0', '--admin-token', `ada:administer:file:${join(folder, 'administer')}`],
      `prometheus:read:file:${join(folder, 'read')}`,
    )
    expect(stdout()).toMatch(/decision API +http:\/\/0\.0\.0\.0:\d+ {2}\(with a token\)/)
    expect(stdout()).toContain(`  dashboard     ${adminUrl}/\n`)
    const server = ['--server', adminUrl.replace('0.0.0.0', '127.0.0.1')]
    const set = [
      'override',
      'set',
      '--subject',
      'user:42',
      '--tier',
      'pro',
      '--ttl',
      '1h',
      '--reason',
      'launch',
    ]
    const rejected = await runInProcess([...set, ...server])
    expect(rejected.code).toBe(2)
    expect(rejected.err).toContain('Authorization: expected Bearer and a token; got none')
    const token = ['--token-file', join(folder, 'administer')]
    expect((await runInProcess([...set, '--by', 'ci', ...server, ...token])).code).toBe(0)
    const { out } = await runInProcess([
      'override',
      'list',
      '--json',
      ...server,
      '--token-file',
      join(folder, 'read'),
    ])
    expect(JSON.parse(out).overrides).toMatchObject([{ by: 'ci (ada)' }])
  })

  it('serve takes every flag from the environment, and what was typed before it', async () => {
    const env = {
      HEADGATE_ADMIN_TOKEN: 'a:read:env:A_TOKEN  b:check:env:B_TOKEN',
      A_TOKEN: SECRETS.read,
      B_TOKEN: SECRETS.check,
      HEADGATE_DEMO: 'on',
      HEADGATE_METRICS_PUBLIC: 'off',
      HEADGATE_PORT: '1',
      HEADGATE_MAX_HEADERS: '5',
      HEADGATE_CONFIG: '',
    }
    const running = await serveHeadgateIn({ env, cwd: folder })
    closers.push(() => running.child.kill('SIGKILL'))
    const many = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map(name => [`x-${name}`, '1']))
    expect((await fetch(running.gatewayUrl, { headers: many })).status).toBe(431)
    expect((await fetch(`${running.adminUrl}/metrics`)).status).toBe(401)
    expect((await fetch(`${running.adminUrl}/metrics`, bearer(SECRETS.read))).status).toBe(200)
  })

  it.each<[string[], Record<string, string>, string]>([
    [
      ['--admin-host', '0.0.0.0'],
      {},
      '--admin-host: expected a loopback address (127.0.0.1, ::1), or --admin-token',
    ],
    [
      [],
      { HEADGATE_ADMIN_TOKEN: 'ada:owner:env:A_TOKEN' },
      'HEADGATE_ADMIN_TOKEN ada: expected a role of check, read, administer; got "owner"',
    ],
    [[], { HEADGATE_ADMIN_HOST: '::' }, 'HEADGATE_ADMIN_HOST: expected a loopback address'],
    [[], { HEADGATE_PORT: 'http' }, 'HEADGATE_PORT: expected a whole number from 0 to 65535; got "http"'],
    [[], { HEADGATE_DEMO: 'perhaps' }, 'HEADGATE_DEMO: expected on or off; got "perhaps"'],
    [[], { HEADGATE_UPSTREAM: 'ftp://x' }, 'HEADGATE_UPSTREAM: expected http'],
    [['--admin-token', 'hunter2hunter2hunter2'], {}, 'name:role:file:path'],
    [
      ['--admin-token', 'a:owner:env:X'],
      {},
      '--admin-token a: expected a role of check, read, administer; got "owner"',
    ],
    [
      ['--admin-token', 'a:read:env:X'],
      {},
      '--admin-token a, X: expected a secret of 16 to 1024 characters; got one of 0',
    ],
    [
      ['--admin-token', 'a:read:file:/none'],
      {},
      '--admin-token a: expected a file that can be read; got no such file',
    ],
    [['--admin-token', 'a:read:env:X'], { X: 'sixteen charact€rs' }, 'visible ASCII'],
    [
      ['--admin-token', 'a:read:env:X', 'a:check:env:Y'],
      { X: 'x'.repeat(16), Y: 'y'.repeat(16) },
      'each name once',
    ],
    [
      ['--admin-token', 'a:read:env:X', 'b:check:env:X'],
      { X: 'x'.repeat(16) },
      'b: expected a secret of its own; got that of a',
    ],
    [['--admin-name', 'a/b'], {}, '--admin-name: expected a host name'],
  ])('serve rejects %j with %j', async (args, env, message) => {
    for (const [name, value] of Object.entries({ HEADGATE_DEMO: 'on', ...env })) vi.stubEnv(name, value)
    const { code, err } = await runInProcess(['serve', ...args])
    vi.unstubAllEnvs()
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
    expect(err).not.toContain('hunter2')
  })
})
