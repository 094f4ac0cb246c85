/** Tests who may call the admin port, and what they get (promises S22 to S24). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGate } from 'headgate'
import { defineConfig } from 'headgate/config'
import { createStatistics } from 'headgate/statistics'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { createAdminServer } from '../src/admin/admin-server.js'
import { type Endpoint, may, ROLES } from '../src/admin/endpoint.js'
import { listen } from '../src/http/listen.js'
import { UpstreamCounts } from '../src/metrics/upstream-counts.js'
import { adminEndpoints } from '../src/service/admin-endpoints.js'
import { type HeadgateProcess, serveHeadgate, serveHeadgateIn } from './support/headgate-process.js'
import { lines, rawRequest } from './support/raw-http.js'
import { runInProcess } from './support/run-in-process.js'
import { figuresOf } from './support/test-figures.js'

const SECRETS = {
  check: 'secret-of-the-check-role',
  read: 'secret-of-the-read-role',
  administer: 'secret-of-the-administer-role',
}
const TOKENS = ROLES.map(role => ({ name: `the-${role}`, role, secret: SECRETS[role] }))
const folder = mkdtempSync(join(tmpdir(), 'headgate-admin-'))
for (const role of ROLES) writeFileSync(join(folder, role), `${SECRETS[role]}\n`)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function admin({ metricsPublic = false, names = [] as string[] } = {}) {
  const gate = createGate({ config: defineConfig({}) })
  const endpoints = adminEndpoints({
    gate,
    figures: figuresOf(gate),
    statistics: createStatistics(),
    upstreams: new UpstreamCounts(),
    metricsPublic,
    log: () => {},
    workers: () => ({ ready: 1, wanted: 1 }),
    arrivals: async () => ({ arrivals: [], share: 1 }),
    isServing: () => true,
    configState: () => ({ config: 'current', refusedConfigs: 0 }),
  })
  const server = createAdminServer({ endpoints, tokens: TOKENS, names, log: () => {} })
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
    const details = { status: 'ok', config: 'current', refusedConfigs: 0 }
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

  it('an address with 20 bad tokens in a minute is refused even with a good one', async () => {
    const { url } = await admin()
    const bad = () =>
      fetch(`${url}/v1/counts`, bearer('a-token-that-nobody-has')).then(({ status }) => status)
    const statuses: number[] = []
    for (let index = 0; index < 21; index++) statuses.push(await bad())
    expect(statuses).toEqual([...new Array(20).fill(401), 429])
    const right = await fetch(`${url}/v1/counts`, bearer(SECRETS.read))
    expect(right.status).toBe(429)
    expect(Number(right.headers.get('retry-after'))).toBeGreaterThan(50)
    // Probes send no token, and still work.
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
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
    const refused = await runInProcess([...set, ...server])
    expect(refused.code).toBe(2)
    expect(refused.err).toContain('Authorization: expected Bearer and a token; got none')
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
  ])('serve refuses %j with %j', async (args, env, message) => {
    for (const [name, value] of Object.entries({ HEADGATE_DEMO: 'on', ...env })) vi.stubEnv(name, value)
    const { code, err } = await runInProcess(['serve', ...args])
    vi.unstubAllEnvs()
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
    expect(err).not.toContain('hunter2')
  })
})
