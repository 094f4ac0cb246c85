/** Forward-auth, asked directly, and by a real nginx and a real Caddy with the configurations of the guide. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { identifyByConfig } from 'headgate/identify'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import {
  snippet,
  startApache,
  startCaddy,
  startHaproxy,
  startNginx,
} from '../../headgate/test/support/proxy-process.js'
import { createAdminServer } from '../src/admin/admin-server.js'
import type { Token } from '../src/admin/tokens.js'
import { forwardAuthEndpoint } from '../src/forward-auth/forward-auth-endpoint.js'
import { listen } from '../src/http/listen.js'
import { startGateway } from './support/test-gateway.js'

const CONFIG = defineConfig({
  policies: {
    api: { algorithm: 'sliding-window-log', limit: 2, window: '1h' },
    login: { algorithm: 'sliding-window-log', limit: 1, window: '1h' },
    shut: {
      limits: [{ algorithm: 'sliding-window-log', limit: 1, window: '1h' }],
      onStoreFailure: 'closed',
    },
  },
  default: { policy: 'api' },
  rules: [
    { name: 'login', match: { method: 'POST', path: '/login' }, policy: 'login' },
    { name: 'shut', match: { path: '/shut' }, policy: 'shut' },
    { name: 'script', match: { path: '/cgi-bin/login.py' }, policy: 'login' },
  ],
  identify: [{ apikey: { header: 'x-api-key' } }, { ip: {} }],
  subjects: {
    'apikey:k1': { policy: 'api' },
    'apikey:k2': { policy: 'api' },
    'apikey:k3': { policy: 'api' },
  },
  trustedProxies: ['10.0.0.0/8'],
})
const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function auth({
  tokens = [],
  isBroken = false,
}: {
  tokens?: readonly Token[]
  isBroken?: boolean
} = {}) {
  const limiter = createLimiter({ config: CONFIG, onWarning: () => {} })
  if (isBroken) await limiter.close()
  const logged: string[] = []
  const log = (line: string) => void logged.push(line)
  const identify = identifyByConfig(CONFIG)
  const endpoints = [forwardAuthEndpoint({ limiter, log, identify: () => identify })]
  const { server } = createAdminServer({ endpoints, tokens, names: [], log })
  const port = await listen(server, { host: '127.0.0.1', port: 0, hostFlag: '', portFlag: '' })
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  const ask = (headers: Record<string, string>, query = '') =>
    fetch(`http://127.0.0.1:${port}/v1/forward-auth${query}`, { headers })
  return { ask, port, close, logged, server }
}

const ABOUT = { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/a?b=c', 'X-Forwarded-For': '192.0.2.1' }

async function asked(options: Parameters<typeof auth>[0] = {}) {
  const served = await auth(options)
  cleanUps.push(served.close)
  const status = async (headers: Record<string, string>) =>
    (await served.ask({ ...ABOUT, ...headers })).status
  return { ...served, status }
}

describe('GET /v1/forward-auth', () => {
  it('forward-auth decides by the rules about the original request, with headers and a problem', async () => {
    const { ask } = await asked()
    const login = { ...ABOUT, 'X-Forwarded-Method': 'POST', 'X-Forwarded-Uri': '/login' }
    const first = await ask(login)
    expect([first.status, first.headers.get('x-ratelimit-limit'), await first.text()]).toEqual([200, '1', ''])
    const second = await ask(login)
    expect(second.status).toBe(429)
    expect(second.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(second.headers.get('headgate-status')).toBe('429')
    expect(await second.json()).toMatchObject({ status: 429, policy: 'login' })
    expect((await ask(login, '?denied=403')).status).toBe(403)
  })

  it('forward-auth knows callers by what the client sent, and by the address the proxy saw', async () => {
    const { status } = await asked()
    const statuses = async (headers: Record<string, string>) => [
      await status(headers),
      await status(headers),
      await status(headers),
    ]
    expect(await statuses({ 'X-Api-Key': 'k1' })).toEqual([200, 200, 429])
    expect(await statuses({ 'X-Api-Key': 'k2' })).toEqual([200, 200, 429])
    expect(await statuses({})).toEqual([200, 200, 429])
    // Everything before the last address is the client's word, unless that address is a trusted proxy's.
    expect(await status({ 'X-Forwarded-For': '198.51.100.9, 192.0.2.1' })).toBe(429)
    expect(await status({ 'X-Forwarded-For': '192.0.2.1, 10.0.0.1' })).toBe(429)
    expect(await status({ 'X-Forwarded-For': '192.0.2.77, 10.0.0.1' })).toBe(200)
  })

  it('forward-auth takes what ingress-nginx sends, and the headers of a page on another site', async () => {
    const { ask } = await asked()
    const answer = await ask({
      'X-Original-Method': 'POST',
      'X-Original-URL': 'https://shop.example/login',
      Origin: 'https://evil.example',
      'X-Forwarded-For': '192.0.2.1',
      'Sec-Fetch-Site': 'cross-site',
    })
    expect([answer.status, answer.headers.get('x-ratelimit-policy')]).toEqual([200, 'login'])
  })

  it.each<[string, Record<string, string>]>([
    ['x-forwarded-method', { 'X-Forwarded-Method': '' }],
    ['x-forwarded-method', { 'X-Original-Method': 'POST' }],
    ['x-forwarded-uri', { 'X-Original-URI': '/other' }],
    ['x-forwarded-for', { 'X-Forwarded-For': '' }],
  ])('forward-auth rejects what leaves %s open', async (field, headers) => {
    const { ask } = await asked()
    const answer = await ask({ ...ABOUT, ...headers })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ field })
    expect((await ask(ABOUT, '?denied=200')).status).toBe(400)
  })

  it('forward-auth holds a request to every method that it claims to be', async () => {
    const { status } = await asked()
    const login = { 'X-Forwarded-Uri': '/login' }
    await status({ ...login, 'X-Forwarded-Method': 'POST' })
    expect(await status({ ...login, 'X-HTTP-Method-Override': 'POST' })).toBe(429)
  })

  it.each([
    '/cgi-bin/login.py/x',
    '/cgi-bin/login.py%00',
    '/cgi-bin/login.py::$DATA',
    '/public/..%20/cgi-bin/login.py',
  ])('forward-auth holds %s to the rule of the script that some server runs for it', async target => {
    const { status } = await asked()
    const ask = (uri: string) => status({ 'X-Forwarded-Uri': uri })
    expect([await ask('/cgi-bin/login.py'), await ask(target)]).toEqual([200, 429])
  })

  it('forward-auth asks for a token beside the client’s Authorization', async () => {
    const secret = 'a-token-of-some-length'
    const { status } = await asked({ tokens: [{ name: 'nginx', role: 'check', secret }] })
    expect(await status({ Authorization: `Bearer ${secret}` })).toBe(401)
    expect(await status({ 'Headgate-Token': 'another-token-of-length' })).toBe(401)
    expect(await status({ 'Headgate-Token': secret, Authorization: 'Bearer of-the-client' })).toBe(200)
  })

  it('forward-auth leaves a limiter at fault to the failure mode', async () => {
    const { ask, logged } = await asked({ isBroken: true })
    expect((await ask(ABOUT)).status).toBe(200)
    const shut = await ask({ ...ABOUT, 'X-Forwarded-Uri': '/shut' }, '?denied=403')
    expect([shut.status, shut.headers.get('headgate-status')]).toEqual([403, '503'])
    expect(logged).toHaveLength(1)
  })
})

/** The service behind the proxies. */
let app: Server
let appPort = 0
beforeAll(async () => {
  app = createServer((req, res) => {
    res.statusCode = req.url === '/forbidden' ? 403 : 200
    res.end(`${req.method} ${req.url}`)
  }).listen(0, '127.0.0.1')
  await once(app, 'listening')
  appPort = (app.address() as AddressInfo).port
})
afterAll(() => app.close())

const START = {
  nginx: (ports: Readonly<Record<number, number>>) => startNginx(snippet('forward-auth.md', 'nginx', ports)),
  caddy: (ports: Readonly<Record<number, number>>) =>
    startCaddy(snippet('forward-auth.md', 'caddyfile', ports)),
  haproxy: (ports: Readonly<Record<number, number>>) =>
    startHaproxy(snippet('forward-auth.md', 'haproxy', ports), snippet('forward-auth.md', 'lua', ports)),
}

async function proxy(kind: keyof typeof START, options: Parameters<typeof auth>[0] = {}) {
  const served = await auth(options)
  cleanUps.push(served.close)
  const ports = { 8082: served.port, 3000: appPort }
  const started = await START[kind](ports)
  cleanUps.push(() => started.stop())
  return { ...served, url: started.url }
}

describe.each(['nginx', 'caddy', 'haproxy'] as const)('%s, as the guide constats it', kind => {
  it('the proxy passes requests and headers on, and answers 429 with Retry-After', async () => {
    const { url } = await proxy(kind)
    const first = await fetch(`${url}/a?b=c`, { headers: { 'X-Forwarded-For': '203.0.113.7' } })
    expect([first.status, await first.text()]).toEqual([200, 'GET /a?b=c'])
    expect(first.headers.get('x-ratelimit-limit')).toBe('2')
    expect(first.headers.get('x-ratelimit-remaining')).toBe('1')
    await fetch(`${url}/a`)
    const third = await fetch(`${url}/a`)
    expect(third.status).toBe(429)
    expect(third.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(third.headers.get('x-ratelimit-remaining')).toBe('0')
    expect(third.headers.get('content-type')).toBe('application/problem+json')
    expect(await third.json()).toMatchObject({ status: 429 })
  })

  it('the proxy goes by the method and the client’s own headers, and by nothing that the client makes up', async () => {
    const { url } = await proxy(kind)
    const post = (headers: Record<string, string>) =>
      fetch(`${url}/login`, { method: 'POST', body: 'x'.repeat(10_000), headers })
    expect((await post({ 'X-Api-Key': 'k1' })).status).toBe(200)
    const made = {
      'X-Forwarded-Uri': '/',
      'X-Original-URL': '/',
      'X-Forwarded-Method': 'GET',
      'X-Original-URI': '/',
    }
    expect((await post({ 'X-Api-Key': 'k1', ...made })).status).toBe(429)
    expect((await fetch(`${url}/forbidden`, { headers: { 'X-Api-Key': 'k3' } })).status).toBe(403)
  })

  it('the proxy answers 503 where limits cannot be checked', async () => {
    const { url } = await proxy(kind, { isBroken: true })
    expect((await fetch(`${url}/shut`)).status).toBe(503)
  })
})

it('nginx limits requests by itself when Headgate is gone', async () => {
  const { url, close } = await proxy('nginx')
  close()
  const began = performance.now()
  const answers = await Promise.all(Array.from({ length: 200 }, () => fetch(`${url}/a`)))
  const elapsedSeconds = (performance.now() - began) / 1_000
  const passed = answers.filter(({ status }) => status === 200).length
  expect(passed).toBeGreaterThanOrEqual(20)
  // The guide's burst and rate for one address.
  expect(passed).toBeLessThanOrEqual(1 + 20 + 10 * elapsedSeconds)
  const denied = answers.find(({ status }) => status !== 200)
  expect(denied?.status).toBe(429)
  expect(await denied?.json()).toMatchObject({ status: 429 })
})

it('nginx keeps its connections to Headgate', async () => {
  const { url, server } = await proxy('nginx')
  let connections = 0
  server.on('connection', () => connections++)
  for (let request = 0; request < 5; request++) await fetch(`${url}/a`)
  expect(connections).toBe(1)
})

it('HAProxy limits requests by itself when Headgate is gone', async () => {
  const { url, close } = await proxy('haproxy')
  close()
  // Until its check has noticed.
  await sleep(1_500)
  const answers: number[] = []
  for (let request = 0; request < 110; request++) answers.push((await fetch(`${url}/a`)).status)
  // The guide's rate for one address in ten seconds; some of them may have left the ten seconds.
  expect(answers.slice(0, 100).every(status => status === 200)).toBe(true)
  expect(new Set(answers)).toEqual(new Set([200, 429]))
})

it('Apache forwards through the gateway, and past it when that is gone', async () => {
  const url = `http://127.0.0.1:${appPort}`
  const { upstream } = defineConfig({ upstream: { urls: url, host: 'keep' } })
  const config = { ...CONFIG, trustedProxies: ['127.0.0.1'], upstream }
  const gateway = await startGateway(null, { config })
  const ports = { 8080: Number(new URL(gateway.url).port), 3000: appPort }
  const apache = await startApache(snippet('forward-auth.md', 'apache', ports))
  cleanUps.push(() => apache.stop())
  const ask = (headers: Record<string, string> = {}) => fetch(`${apache.url}/a`, { headers })
  const made = { 'X-Forwarded-For': '203.0.113.9' }
  expect([(await ask()).status, (await ask(made)).status]).toEqual([200, 200])
  // The client's own word about its address changes nothing: Apache adds the one it saw.
  const third = await ask({ 'X-Forwarded-For': '203.0.113.10' })
  expect(third.status).toBe(429)
  expect(third.headers.get('retry-after')).toMatch(/^\d+$/)
  await gateway.close()
  expect((await ask()).status).toBe(200)
})

it('Caddy rejects requests when Headgate is gone', async () => {
  const { url, close } = await proxy('caddy')
  close()
  expect((await fetch(`${url}/a`)).status).toBe(502)
})

it('the guide’s configuration of Traefik can be read, and names an endpoint that there is', () => {
  const guide = readFileSync(new URL('../../../docs/guide/forward-auth.md', import.meta.url), 'utf8')
  const [, text = ''] = /## Traefik\n\n```yml\n([\s\S]*?)```/.exec(guide) ?? []
  const { http } = parse(text) as {
    http: { middlewares: { headgate: { forwardAuth: { address: string } } } }
  }
  const { pathname, port } = new URL(http.middlewares.headgate.forwardAuth.address)
  const limiter = createLimiter({ config: CONFIG, onWarning: () => {} })
  const { path } = forwardAuthEndpoint({ limiter, identify: () => identifyByConfig(CONFIG), log: () => {} })
  expect([pathname, port]).toEqual([path, '8082'])
})
