import { slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lines, rawRequest } from './support/raw-http.js'
import { type RawUpstream, startRawUpstream } from './support/raw-upstream.js'
import { startGateway, type TestGateway } from './support/test-gateway.js'

let upstream: RawUpstream
let gateway: TestGateway

beforeEach(async () => {
  upstream = await startRawUpstream()
  gateway = await startGateway(upstream.url)
})

afterEach(async () => {
  await gateway.close()
  await upstream.close()
})

describe('a request that could be read in two ways is rejected, and the upstream hears nothing of it', () => {
  it.each<[string, number, string]>([
    ['two Host headers', 400, lines('GET / HTTP/1.1', 'Host: a', 'Host: b')],
    ['the same Host twice', 400, lines('GET / HTTP/1.1', 'Host: a', 'Host: a')],
    ['no Host', 400, lines('GET / HTTP/1.1')],
    ['no Host in HTTP/1.0', 400, lines('GET / HTTP/1.0')],
    ['an empty Host', 400, lines('GET / HTTP/1.1', 'Host:')],
    ['a Host with a user', 400, lines('GET / HTTP/1.1', 'Host: a@b')],
    ['a Host with a path', 400, lines('GET / HTTP/1.1', 'Host: a/b')],
    ['absolute-form', 400, lines('GET http://169.254.169.254/latest HTTP/1.1', 'Host: a')],
    ['a target without a slash', 400, lines('GET evil HTTP/1.1', 'Host: a')],
    ['a target with a backslash', 400, lines('GET \\evil HTTP/1.1', 'Host: a')],
    ['a target with @', 400, lines('GET @evil HTTP/1.1', 'Host: a')],
    ['asterisk-form', 400, lines('OPTIONS * HTTP/1.1', 'Host: a')],
    ['CONNECT', 501, lines('CONNECT 127.0.0.1:6379 HTTP/1.1', 'Host: a')],
    [
      'an upgrade to a WebSocket',
      501,
      lines('GET / HTTP/1.1', 'Host: a', 'Connection: Upgrade', 'Upgrade: websocket'),
    ],
    [
      'an upgrade to a WebSocket or h2c',
      501,
      lines('GET / HTTP/1.1', 'Host: a', 'Connection: Upgrade', 'Upgrade: h2c, websocket'),
    ],
    ['HTTP/2.0 on a line of HTTP/1.1', 505, lines('GET / HTTP/2.0', 'Host: a')],
    ['HTTP/0.9 with a version', 505, lines('GET / HTTP/0.9', 'Host: a')],
    ['another expectation', 417, lines('GET / HTTP/1.1', 'Host: a', 'Expect: 200-ok')],
    ['101 headers', 431, lines('GET / HTTP/1.1', 'Host: a', ...new Array(100).fill('a: b'))],
    [
      'Transfer-Encoding beside Content-Length',
      400,
      `${lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    ],
    [
      'two Content-Lengths',
      400,
      `${lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 5', 'Content-Length: 6')}hello`,
    ],
    [
      'a Content-Length with a sign',
      400,
      `${lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: +5')}hello`,
    ],
    [
      'a space before the colon',
      400,
      `${lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding : chunked')}0\r\n\r\n`,
    ],
    [
      'another coding',
      501,
      `${lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: gzip, chunked')}0\r\n\r\n`,
    ],
    ['identity alone', 501, lines('GET / HTTP/1.1', 'Host: a', 'Transfer-Encoding: identity')],
    [
      'a coding that the parser stops at',
      501,
      `${lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: gzip, chunked')}not a length\r\n`,
    ],
    [
      'chunked twice',
      400,
      `${lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked, chunked')}0\r\n\r\n`,
    ],
    [
      'identity after chunked',
      400,
      `${lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked, identity')}0\r\n\r\n`,
    ],
    [
      'chunked in HTTP/1.0',
      400,
      `${lines('POST / HTTP/1.0', 'Host: a', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    ],
    ['headers of 64 KB', 431, lines('GET / HTTP/1.1', 'Host: a', `X-Long: ${'x'.repeat(65_536)}`)],
  ])(
    'a request that could be read in two ways is rejected, and the upstream hears nothing of it: %s',
    async (_name, status, request) => {
      expect((await rawRequest(gateway.url, request)).status).toBe(status)
      expect(upstream.received).toEqual([])
    },
  )
})

describe('a request is written anew for the upstream', () => {
  it('a request reaches the upstream without the headers of one connection, or those that Connection names', async () => {
    const reply = await rawRequest(
      gateway.url,
      lines(
        'GET /a?b=1 HTTP/1.1',
        'Host: shop.example',
        'Connection: keep-alive, X-Secret, authorization, x-forwarded-for',
        'Keep-Alive: timeout=5',
        'Proxy-Connection: keep-alive',
        'Proxy-Authorization: Basic YTpi',
        'TE: trailers',
        'Trailer: X-T',
        'X-Secret: 1',
        'Authorization: Bearer t',
        'Accept: a',
        'Accept: b',
      ),
    )
    expect(reply.status).toBe(200)
    expect(upstream.received).toEqual([
      lines(
        'GET /a?b=1 HTTP/1.1',
        `host: ${new URL(upstream.url).host}`,
        'connection: keep-alive',
        'X-Forwarded-For: 127.0.0.1',
        'X-Forwarded-Proto: http',
        'X-Forwarded-Host: shop.example',
        `X-Request-Id: ${reply.header('X-Request-Id')}`,
        'Accept: a',
        'Accept: b',
      ),
    ])
  })

  it('a request reaches the upstream with our forwarding headers and not the client’s own', async () => {
    await rawRequest(
      gateway.url,
      lines(
        'GET / HTTP/1.1',
        'Host: a',
        'X-Forwarded-For: 6.6.6.6',
        'x-forwarded-for: 7.7.7.7',
        'X_Forwarded_For: 8.8.8.8',
        'X-Forwarded-Host: evil',
        'X-Forwarded-Prefix: /evil',
        'Forwarded: for=6.6.6.6',
        'X-Real-IP: 6.6.6.6',
        '__proto__: x',
      ),
    )
    const request = upstream.received[0] ?? ''
    expect(request.match(/forwarded[-_]for: .*/gi)).toEqual(['Forwarded-For: 127.0.0.1'])
    expect(request).not.toMatch(/6\.6\.6\.6|8\.8\.8\.8|evil/)
  })

  it('our forwarding headers come before any of the client’s own, however many there are', async () => {
    const many = Array.from({ length: 99 }, (_, index) => `x${index}: y`)
    expect((await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a', ...many))).status).toBe(200)
    const names = upstream.received[0]?.split('\r\n').map(line => line.split(':')[0])
    expect(names?.slice(1, 3)).toEqual(['host', 'connection'])
    expect(names?.slice(3, 6)).toEqual(['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host'])
    expect(names).toContain('x98')
  })

  it('a request reaches the upstream without a stranger’s claims about its address or its target', async () => {
    const claims = [
      'CF-Connecting-IP',
      'True-Client-IP',
      'x_client_ip',
      'Fastly-Client-IP',
      'X.Real.IP',
      'X-Original-URL',
      'X-Rewrite-URL',
      'X_Original_URL',
      'X-Original-Host',
      'Transfer_Encoding',
      'Content_Length',
      'Proxy_Authorization',
    ]
    await rawRequest(
      gateway.url,
      lines('GET / HTTP/1.1', 'Host: a', 'X_Other: kept', ...claims.map(name => `${name}: claimed`)),
    )
    expect(upstream.received[0]).toContain('X_Other: kept')
    expect(upstream.received[0]).not.toContain('claimed')
  })

  it('a request reaches the upstream without an offer of HTTP/2, which is passed over with whatever follows it', async () => {
    const offer = lines(
      'GET /1 HTTP/1.1',
      'Host: a',
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMA',
    )
    const early = lines('GET /early HTTP/1.1', 'Host: a')
    const reply = await rawRequest(gateway.url, [`${offer}PRI * HTTP/2.0\r\n\r\n${early}`, early])
    expect(reply.text.match(/HTTP\/1\.1 200 /g)).toHaveLength(1)
    expect(reply.header('Connection')).toBe('close')
    expect(upstream.received.join('')).toMatch(/^GET \/1 /)
    expect(upstream.received.join('')).not.toMatch(/upgrade|http2|early|PRI/i)
  })

  it('a chunked body of a DELETE reaches the upstream chunked as it came, once', async () => {
    await rawRequest(gateway.url, [
      lines('DELETE /it HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'),
      '5;ext=1\r\nhello\r\n',
      '0\r\n\r\n',
    ])
    expect(upstream.received).toHaveLength(1)
    const request = upstream.received[0] ?? ''
    expect(request.match(/transfer-encoding: chunked/gi)).toHaveLength(1)
    expect(request).not.toMatch(/content-length/i)
    expect(request.split('\r\n\r\n').slice(1).join('\r\n\r\n')).toBe('5\r\nhello\r\n0\r\n\r\n')
  })

  it('a request hidden in a body stays a body', async () => {
    const hidden = lines('GET /admin HTTP/1.1', 'Host: a')
    await rawRequest(
      gateway.url,
      `${lines('GET / HTTP/1.1', 'Host: a', `Content-Length: ${hidden.length}`)}${hidden}`,
    )
    expect(upstream.received).toHaveLength(1)
    expect(upstream.received[0]).toContain(`content-length: ${hidden.length}\r\n`)
    expect(upstream.received[0]?.endsWith(hidden)).toBe(true)
  })

  it('a path of two slashes reaches the upstream as a path and not as a host', async () => {
    expect((await rawRequest(gateway.url, lines('GET //evil.example/x HTTP/1.1', 'Host: a'))).status).toBe(
      200,
    )
    expect(upstream.received[0]).toMatch(/^GET \/\/evil\.example\/x HTTP\/1\.1\r\n/)
  })
})

describe('an answer is written anew for the client', () => {
  it('an answer reaches the client without the headers of one connection, or those that Connection names', async () => {
    upstream.answerWith(
      `${lines(
        'HTTP/1.1 201 Made',
        'Connection: x-up, keep-alive',
        'X-Up: 1',
        'Keep-Alive: timeout=99',
        'Proxy-Authenticate: Basic',
        'Upgrade: h2c',
        'Set-Cookie: a=1',
        'Set-Cookie: b=2',
        'X-RateLimit-Limit: 999999',
        'Content-Length: 2',
      )}ok`,
    )
    const reply = await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a'))
    expect(reply.status).toBe(201)
    expect(reply.text).not.toMatch(/x-up|proxy-authenticate|upgrade|timeout=99|999999/i)
    expect(reply.text.match(/set-cookie: .*/gi)).toEqual(['Set-Cookie: a=1', 'Set-Cookie: b=2'])
    expect(reply.header('X-RateLimit-Limit')).toBe('1000')
    expect(reply.text.endsWith('\r\n\r\nok')).toBe(true)
  })

  it('a redirect is an answer like any other', async () => {
    upstream.answerWith(lines('HTTP/1.1 302 Found', 'Location: http://169.254.169.254/', 'Content-Length: 0'))
    const reply = await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a'))
    expect(reply.status).toBe(302)
    expect(reply.header('Location')).toBe('http://169.254.169.254/')
    expect(upstream.received).toHaveLength(1)
  })

  it('an answer reaches the client without the length of a body that must not come', async () => {
    upstream.answerWith(lines('HTTP/1.1 204 No Content', 'Content-Length: 5'))
    const empty = await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a'))
    expect([empty.status, empty.header('Content-Length')]).toEqual([204, undefined])
    // The length of what a GET would have returned; RFC 9110 allows it.
    upstream.answerWith(lines('HTTP/1.1 304 Not Modified', 'Content-Length: 5'))
    const unchanged = await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a'))
    expect([unchanged.status, unchanged.header('Content-Length')]).toEqual([304, '5'])
  })

  it.each([
    ['a control byte in its reason', lines('HTTP/1.1 200 a\x01b', 'Content-Length: 0')],
    ['a status that is none', lines('HTTP/1.1 099 OK', 'Content-Length: 0')],
    ['another transfer coding', lines('HTTP/1.1 200 OK', 'Transfer-Encoding: gzip, chunked')],
  ])('an answer with %s is a bad gateway, and logged', async (_name, answer) => {
    upstream.answerWith(answer)
    const reply = await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a'))
    expect(reply.text).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/)
    expect(reply.text).toContain('gave an answer that cannot be passed on')
    expect(gateway.logged).toHaveLength(1)
    upstream.answerWith(lines('HTTP/1.1 200 OK', 'Content-Length: 0'))
    expect((await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a'))).status).toBe(200)
  })

  it('an answer that is not HTTP is a bad gateway', async () => {
    upstream.answerWith('SSH-2.0-OpenSSH_9.2\r\n')
    expect((await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a'))).status).toBe(502)
    upstream.answerWith(lines('HTTP/1.1 200 OK', 'Content-Length: 5', 'Transfer-Encoding: chunked'))
    expect((await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a'))).status).toBe(502)
    upstream.answerWith(lines('HTTP/1.1 101 Switching Protocols', 'Connection: upgrade', 'Upgrade: h2c'))
    expect((await rawRequest(gateway.url, lines('GET / HTTP/1.1', 'Host: a'))).status).toBe(502)
  })
})

it('a header that some server takes for a method override is held to the rules of that method', async () => {
  const perMinute = (limit: number) => slidingWindowLog({ limit, window: '1m' })
  const strict = await startGateway(upstream.url, {
    config: defineConfig({
      policies: { api: perMinute(100), removal: perMinute(1) },
      default: { policy: 'api' },
      rules: [{ name: 'removal', match: { method: 'DELETE', path: '/x' }, policy: 'removal' }],
    }),
  })
  const claim = (header: string) => rawRequest(strict.url, lines('POST /x HTTP/1.1', 'Host: a', header))
  upstream.answerWith(lines('HTTP/1.1 200 OK', 'Content-Length: 0'))
  const statuses = [
    (await claim('X_HTTP_Method_Override: DELETE')).status,
    (await claim('X-HTTP_Method-Override: DELETE')).status,
    (await claim('X-Other: DELETE')).status,
  ]
  await strict.close()
  expect(statuses).toEqual([200, 429, 200])
})
