/** WebSocket through the gateway: limited at the handshake, then bytes both ways (promise S30). */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, describe, expect, it } from 'vitest'
import { openClient, untilQuiet } from './support/raw-client.js'
import { lines, rawRequest } from './support/raw-http.js'
import { startRawUpstream } from './support/raw-upstream.js'
import { startGateway, type TestGatewayOptions } from './support/test-gateway.js'

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const HANDSHAKE = lines(
  'GET /chat HTTP/1.1',
  'Host: a',
  'Connection: Upgrade',
  'Upgrade: websocket',
  `Sec-WebSocket-Key: ${KEY}`,
  'Sec-WebSocket-Version: 13',
)

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** A server that accepts the upgrade and echoes every byte. */
async function echo(agree = true): Promise<{ url: string; asked: IncomingMessage[]; open: Set<Duplex> }> {
  const asked: IncomingMessage[] = []
  const open = new Set<Duplex>()
  const server = createServer((_req, res) => res.end('plain'))
  server.on('upgrade', (req, socket) => {
    asked.push(req)
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
    const accept = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    if (!agree) return socket.end(lines('HTTP/1.1 403 Forbidden', 'Content-Length: 0'))
    socket.write(
      lines(
        'HTTP/1.1 101 Switching Protocols',
        'Connection: Upgrade',
        'Upgrade: websocket',
        `Sec-WebSocket-Accept: ${accept}`,
      ),
    )
    socket.pipe(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    for (const socket of open) socket.destroy()
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, open }
}

async function gatewayTo(url: string, options?: TestGatewayOptions) {
  const gateway = await startGateway(url, options)
  closers.push(gateway.close)
  return gateway
}

it('a WebSocket gets the handshake passed on, then bytes both ways, and each side closes with the other', async () => {
  const upstream = await echo()
  const { url } = await gatewayTo(upstream.url)
  const client = openClient(url, HANDSHAKE)
  closers.push(() => client.socket.destroy())
  await expect
    .poll(client.text)
    .toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n[\s\S]*X-RateLimit-Remaining: 999/)
  expect(client.text()).toMatch(/Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/)
  expect(client.text().match(/upgrade: websocket/gi)).toHaveLength(1)
  client.socket.write('\x81\x05hello', 'latin1')
  await expect.poll(() => client.text().endsWith('\r\n\r\n\x81\x05hello')).toBe(true)
  expect(upstream.asked[0]?.headers).toMatchObject({
    'x-forwarded-for': '127.0.0.1',
    'sec-websocket-key': KEY,
  })
  client.socket.destroy()
  await expect.poll(() => upstream.open.size).toBe(0)
})

it('a WebSocket is limited at the handshake', async () => {
  const upstream = await echo()
  const { url } = await gatewayTo(upstream.url, { limit: 1 })
  const first = openClient(url, HANDSHAKE)
  closers.push(() => first.socket.destroy())
  await expect.poll(first.text).toContain('101')
  const second = await rawRequest(url, HANDSHAKE)
  expect(second.status).toBe(429)
  expect(second.header('Retry-After')).toBe('60')
  expect(upstream.asked).toHaveLength(1)
})

it('a tunnel is not idle, however long nothing is said, and counts as its client’s request', async () => {
  const upstream = await echo()
  const { url } = await gatewayTo(upstream.url, { bounds: { maxClientRequests: 1 } })
  const client = openClient(url, HANDSHAKE)
  closers.push(() => client.socket.destroy())
  await expect.poll(client.text).toContain('101')
  expect((await rawRequest(url, lines('GET / HTTP/1.1', 'Host: a'))).status).toBe(429)
  client.socket.destroy()
  await expect.poll(async () => (await rawRequest(url, lines('GET / HTTP/1.1', 'Host: a'))).status).toBe(200)
})

it('an upstream that declines is heard', async () => {
  const upstream = await echo(false)
  const { url } = await gatewayTo(upstream.url)
  const reply = await rawRequest(url, HANDSHAKE)
  expect([reply.status, reply.header('Connection')]).toEqual([403, 'close'])
})

it('an upstream that declines frees the permits of a client that does not close', async () => {
  const upstream = await echo(false)
  const { url } = await gatewayTo(upstream.url, { bounds: { maxClientRequests: 1 } })
  const client = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  closers.push(() => client.destroy())
  client.write(HANDSHAKE)
  client.resume()
  await once(client, 'end')
  const statusNow = async () => (await rawRequest(url, lines('GET / HTTP/1.1', 'Host: a'))).status
  await expect.poll(statusNow).toBe(200)
})

it('an upstream that declines at length is let go with the client', async () => {
  const upstream = createTcpServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write(`${lines('HTTP/1.1 403 Forbidden')}${'x'.repeat(4_000_000)}`))
  })
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  closers.push(() => upstream.close())
  const { url } = await gatewayTo(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`)
  const asked = once(upstream, 'connection')
  const client = openClient(url, HANDSHAKE)
  const [connection] = (await asked) as [Socket]
  closers.push(() => connection.destroy())
  // It may close with an error, at which `once` would fail.
  const closed = new Promise<void>(resolve => connection.on('close', () => resolve()))
  await once(client.socket, 'data')
  client.socket.destroy()
  await closed
})

describe('nothing that comes before the upstream has agreed is passed on', () => {
  const SMUGGLED = lines('GET /smuggled HTTP/1.1', 'Host: a')

  it.each<[string, string | string[]]>([
    ['in the same packet', HANDSHAKE + SMUGGLED],
    ['in the next', [HANDSHAKE, SMUGGLED]],
    ['as a body', HANDSHAKE.replace('\r\n\r\n', `\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n`) + SMUGGLED],
  ])('nothing that comes before the upstream has agreed is passed on: %s', async (_how, bytes) => {
    const upstream = await startRawUpstream()
    closers.push(upstream.close)
    upstream.fallSilent()
    const { url } = await gatewayTo(upstream.url)
    const [first = '', next] = [bytes].flat()
    const client = openClient(url, first)
    if (next !== undefined) {
      await expect.poll(() => upstream.received.length).toBe(1)
      client.socket.write(next)
    }
    await client.closed
    expect(upstream.received.join('')).not.toContain('smuggled')
    expect(client.text()).not.toContain('101')
  })

  it('a client that does not wait for the agreement is told so', async () => {
    const upstream = await echo()
    const { url } = await gatewayTo(upstream.url)
    const reply = await rawRequest(url, HANDSHAKE + SMUGGLED)
    expect([reply.status, upstream.asked.length]).toEqual([400, 0])
    expect(reply.text).toContain('expected nothing before the upgrade')
  })

  it('nothing behind an agreement to another protocol is passed on', async () => {
    const upstream = await startRawUpstream()
    closers.push(upstream.close)
    upstream.answerWith(lines('HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: h2c'))
    const { url } = await gatewayTo(upstream.url)
    expect((await rawRequest(url, HANDSHAKE)).status).toBe(502)
  })
})

describe('an offer of HTTP/2 is passed over', () => {
  const OFFER = [
    'Connection: Upgrade, HTTP2-Settings, x-secret',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA',
    'x-secret: 1',
  ]

  it('a request that offers HTTP/2 is served as HTTP/1.1, body and all, and the connection closes', async () => {
    const upstream = await startRawUpstream()
    closers.push(upstream.close)
    const { url } = await gatewayTo(upstream.url)
    const client = openClient(
      url,
      `${lines('POST /x HTTP/1.1', 'Host: a', ...OFFER, 'Content-Length: 5')}hello`,
    )
    await client.closed
    expect(client.text()).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(upstream.received).toHaveLength(1)
    expect(upstream.received[0]).toMatch(/^POST \/x HTTP\/1\.1[\s\S]*\r\n\r\nhello$/)
    expect(upstream.received[0]).not.toMatch(/h2c|http2-settings|x-secret/i)
  })

  it('bytes after an offer of HTTP/2 reach nobody', async () => {
    const upstream = await startRawUpstream()
    closers.push(upstream.close)
    const { url } = await gatewayTo(upstream.url)
    const bytes = lines('GET / HTTP/1.1', 'Host: a', ...OFFER) + lines('GET /behind HTTP/1.1', 'Host: a')
    const client = openClient(url, bytes)
    await untilQuiet(client, 500)
    client.socket.destroy()
    expect(upstream.received.join('')).not.toContain('/behind')
  })

  it('an offer of any other protocol is 501, and not charged', async () => {
    const upstream = await echo()
    const { url } = await gatewayTo(upstream.url, { limit: 1 })
    for (const protocol of ['websocket, h2c', 'TLS/1.0', 'websocket']) {
      const reply = await rawRequest(
        url,
        lines('GET / HTTP/1.1', 'Host: a', 'Connection: Upgrade', `Upgrade: ${protocol}`),
      )
      expect(reply.status).toBe(501)
    }
    expect((await rawRequest(url, lines('GET / HTTP/1.1', 'Host: a'))).status).toBe(200)
  })
})
