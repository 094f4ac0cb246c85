/** Tests which server a request goes to, and what happens if that one fails. */

import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { slidingWindowLog } from 'headgate'
import { type ConfigOptions, defineConfig } from 'headgate/config'
import { type PolicyInput, upstreamOf } from 'headgate/internal'
import { afterEach, describe, expect, it } from 'vitest'
import { createFindRoute } from '../src/gateway/routes.js'
import { createServerHealth } from '../src/gateway/server-health.js'
import { createUpstreamPool } from '../src/gateway/upstream-pool.js'
import { certificate } from './support/certificate.js'
import { lines, rawRequest } from './support/raw-http.js'
import { startRawUpstream } from './support/raw-upstream.js'
import { startGateway, type TestGatewayOptions } from './support/test-gateway.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function listening(server: Server, scheme = 'http'): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closers.push(
    () =>
      new Promise(resolve => {
        server.close(resolve)
        if ('closeAllConnections' in server) (server.closeAllConnections as () => void)()
      }),
  )
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server that answers with its name and the Host it was sent. */
function named(name: string): RequestListener {
  return (req, res) => void req.resume().on('end', () => res.end(`${name} ${req.headers.host} ${req.url}`))
}

type Forwarding = Pick<ConfigOptions<Record<string, PolicyInput>, 'default'>, 'upstream' | 'routes'>

async function gatewayTo(forwarding: Forwarding, options: TestGatewayOptions = {}) {
  const config = defineConfig({
    policies: { api: slidingWindowLog({ limit: 10_000, window: '1m' }) },
    default: { policy: 'api' },
    ...forwarding,
  })
  const gateway = await startGateway(null, { ...options, config })
  closers.push(gateway.close)
  const ask = async (path = '/', host = 'a') =>
    (await rawRequest(gateway.url, lines(`GET ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close'))).text
  return { ...gateway, ask }
}

describe('a request goes', () => {
  const { routes, upstream } = defineConfig({
    upstream: 'http://rest',
    routes: [
      { match: { path: '/api' }, upstream: 'http://api' },
      { match: { path: '/api/v2' }, upstream: 'http://api-v2' },
      { match: { host: '*.example.com' }, upstream: 'http://below' },
      { match: { host: '*.eu.example.com' }, upstream: 'http://below-eu' },
      { match: { host: ['example.com', 'www.example.com'], path: '/api' }, upstream: 'http://www-api' },
    ],
  })
  const find = createFindRoute({ routes, upstream }, ({ urls }) => urls[0])

  it.each([
    ['a', '/', 'rest'],
    ['a', '/api', 'api'],
    ['a', '/api?x=/api/v2', 'api'],
    ['a', '/apis', 'rest'],
    ['a', '/api/v2/users', 'api-v2'],
    ['a', '/api/v2/../v3', 'api'],
    ['a', '/api/%2e%2E/x', 'rest'],
    ['a', '/x\\..\\api', 'api'],
    ['example.com', '/api', 'www-api'],
    ['EXAMPLE.com:8080', '/api/x', 'www-api'],
    ['example.com', '/', 'rest'],
    ['.example.com', '/', 'rest'],
    ['shop.example.com', '/api', 'below'],
    ['shop.eu.example.com', '/api', 'below-eu'],
    ['example.com.evil', '/', 'rest'],
  ])('a request with Host %s and path %s goes to %s', (host, path, expected) => {
    expect(find(host, path)).toBe(`http://${expected}`)
  })

  it('a request goes nowhere when no route is for it', async () => {
    const url = await listening(createServer(named('api')))
    const { ask } = await gatewayTo({ routes: [{ match: { path: '/api' }, upstream: url }] })
    expect(await ask('/api/1')).toContain(`api ${new URL(url).host} /api/1`)
    expect(await ask('/other')).toMatch(/^HTTP\/1\.1 404[\s\S]*No route is for this host and path/)
  })

  it('a request goes with its own Host, where that is wanted', async () => {
    const url = await listening(createServer(named('api')))
    const { ask } = await gatewayTo({ upstream: { urls: url, host: 'keep' } })
    expect(await ask('/', 'shop.example:81')).toContain('api shop.example:81 /')
  })
})

describe('servers that do the same', () => {
  it('servers that do the same take turns, and the one with fewer requests in flight is asked first', async () => {
    const waiting: (() => void)[] = []
    const slow = await listening(createServer((_req, res) => void waiting.push(() => res.end('slow'))))
    const quick = await listening(createServer(named('quick')))
    const { ask } = await gatewayTo({ upstream: [slow, quick] })
    const first = [ask(), ask()]
    await expect.poll(() => waiting.length).toBe(1)
    for (let index = 0; index < 10; index++) expect(await ask()).toContain('quick')
    for (const release of waiting) release()
    expect((await Promise.all(first)).map(text => text.split('\r\n\r\n')[1]?.slice(0, 5)).sort()).toEqual([
      'quick',
      'slow',
    ])
  })

  it('servers stand in for one that is gone, also for requests that must not be asked twice', async () => {
    const gone = createServer()
    const goneUrl = await listening(gone)
    await new Promise(resolve => gone.close(resolve))
    const well = await listening(createServer(named('well')))
    const { url, logged } = await gatewayTo({ upstream: [goneUrl, well] })
    for (let index = 0; index < 10; index++) {
      const answer = await fetch(url, { method: 'POST', body: 'x'.repeat(100_000) })
      expect([answer.status, (await answer.text()).split(' ')[0]]).toEqual([200, 'well'])
    }
    expect(logged).toEqual([])
  })

  it('a request that may have been executed is not sent to another server', async () => {
    const breaking = await startRawUpstream()
    closers.push(breaking.close)
    breaking.answerBy((_request, socket) => void socket.destroy())
    const { url } = await gatewayTo({ upstream: [breaking.url] })
    expect((await fetch(url, { method: 'POST', body: 'x' })).status).toBe(502)
    expect(breaking.received).toHaveLength(1)
    expect((await fetch(url)).status).toBe(502)
    // Once more, and no more than that.
    expect(breaking.received).toHaveLength(3)
  })

  it('servers that fail are left alone for a while, longer each time, and tried by one request', () => {
    const health = createServerHealth()
    const asked = (nowMs: number) =>
      [1, 2].map(() => {
        const isUp = health.isUp(nowMs)
        if (isUp) health.asked(nowMs)
        return isUp
      })
    for (let failure = 0; failure < 2; failure++) health.failed(0)
    expect(asked(0)).toEqual([true, true])
    health.failed(0)
    expect(asked(999)).toEqual([false, false])
    expect(asked(1_000)).toEqual([true, false])
    health.failed(1_000)
    expect(asked(2_999)).toEqual([false, false])
    expect(asked(3_000)).toEqual([true, false])
    health.succeeded()
    expect(asked(3_000)).toEqual([true, true])
  })

  it('servers that have rested are tried when their turn comes, by one request', () => {
    const config = upstreamOf('http://127.0.0.1:1')
    const pool = createUpstreamPool(
      { ...config, urls: [1, 2, 3].map(port => `http://127.0.0.1:${port}`) },
      {},
    )
    closers.push(pool.close)
    const [rested] = pool.servers
    for (let failure = 0; failure < 3; failure++) rested?.health.failed(performance.now() - 2_000)
    const chosen = Array.from({ length: 9 }, () => pool.choose([]))
    expect(chosen.filter(server => server === rested)).toHaveLength(1)
  })
})

describe('an https upstream', () => {
  it('an https upstream is verified against its authority and its name', async () => {
    const { key, cert } = await certificate('127.0.0.1')
    const url = await listening(createHttpsServer({ key, cert }, named('secret')), 'https')
    const trusting = await gatewayTo({ upstream: url }, { upstreamCa: cert })
    expect(await trusting.ask()).toContain('secret')
    const strict = await gatewayTo({ upstream: url })
    expect(await strict.ask()).toMatch(/^HTTP\/1\.1 502/)
    expect(strict.logged.join()).toMatch(/could not be reached \(DEPTH_ZERO_SELF_SIGNED_CERT\)/)
    const other = await certificate('other.example')
    const wrong = await listening(createHttpsServer(other, named('wrong')), 'https')
    const misled = await gatewayTo({ upstream: wrong }, { upstreamCa: other.cert })
    expect(await misled.ask()).toMatch(/^HTTP\/1\.1 502/)
    expect(misled.logged.join()).toContain('ERR_TLS_CERT_ALTNAME_INVALID')
  })
})

it('trailers of an answer reach the client', async () => {
  const upstream = await startRawUpstream()
  closers.push(upstream.close)
  upstream.answerWith(
    `${lines('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', 'Trailer: X-Sum')}2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n`,
  )
  const { ask } = await gatewayTo({ upstream: upstream.url })
  expect(await ask()).toMatch(/Trailer: X-Sum[\s\S]*2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n$/)
})
