import { concurrency, createLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterEach, describe, expect, it } from 'vitest'
import { changed } from '../../headgate/test/support/changed.ts'
import type { Bounds } from '../src/http/bounds.js'
import { openClient, type RawClient, statusesIn } from './support/raw-client.js'
import { lines } from './support/raw-http.js'
import { type RawUpstream, startRawUpstream } from './support/raw-upstream.js'
import { startGateway, type TestGateway, type TestGatewayOptions } from './support/test-gateway.js'

const GET = lines('GET / HTTP/1.1', 'Host: a')
let upstream: RawUpstream
let gateway: TestGateway
const clients: RawClient[] = []

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy()
  await gateway.close()
  await upstream.close()
})

async function start(bounds: Partial<Bounds>, options: TestGatewayOptions = {}): Promise<void> {
  upstream = await startRawUpstream()
  gateway = await startGateway(upstream.url, { ...options, bounds })
}

/** Sends bytes and keeps listening. */
function send(bytes: string): RawClient {
  const client = openClient(gateway.url, bytes)
  clients.push(client)
  return client
}

/** A busy machine needs longer than the second that `expect.poll` waits. */
function until<Value>(read: () => Value | Promise<Value>) {
  return expect.poll(read, { timeout: 10_000 })
}

describe('a body', () => {
  const post = lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 100000')

  it('a body that comes too slowly is 408, and its connection and the one to the upstream are closed', async () => {
    await start({ minBodyRate: 1_000, bodyGraceMs: 500 })
    upstream.fallSilent()
    const client = send(post)
    await until(() => upstream.sockets.size).toBe(1)
    const trickle = setInterval(() => client.socket.write('x'), 100)
    await client.closed
    clearInterval(trickle)
    expect(statusesIn(client.text())).toEqual([408])
    await until(() => upstream.sockets.size).toBe(0)
  })

  it('a body that nobody wants is not waited for either', async () => {
    await start({ minBodyRate: 1_000, bodyGraceMs: 500 }, { limit: 0 })
    const client = send(lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 1000'))
    const trickle = setInterval(() => client.socket.write('x'), 100)
    await client.closed
    clearInterval(trickle)
    expect(statusesIn(client.text())).toEqual([429])
  })

  it('a body that the upstream does not read is not the client’s fault', async () => {
    await start({ minBodyRate: 1_000, bodyGraceMs: 100 })
    upstream.answerBy((_request, socket) => socket.pause())
    const head = lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 100000000')
    const client = send(`${head}${'x'.repeat(50_000_000)}`)
    await until(() => upstream.received.length).toBe(1)
    // Each of these is at fault, so when it is rejected, all connections have been checked once more.
    for (let check = 0; check < 2; check++) {
      const slow = send(post)
      await until(() => statusesIn(slow.text())).toEqual([408])
    }
    expect(client.socket.writableLength).toBeGreaterThan(0)
    expect(client.socket.destroyed).toBe(false)
    expect(client.text()).toBe('')
  })

  it('a body that the client was not yet asked for is not late', async () => {
    const config = defineConfig({
      policies: { one: concurrency({ limit: 1 }), many: slidingWindowLog({ limit: 1_000, window: '1m' }) },
      default: { policy: 'many' },
      rules: [{ name: 'one', match: { path: '/one' }, policy: 'one', wait: { atMost: '1m' } }],
    })
    await start({ minBodyRate: 1_000, bodyGraceMs: 100 }, { config })
    upstream.fallSilent()
    const first = send(lines('GET /one HTTP/1.1', 'Host: a'))
    await until(() => upstream.received.length).toBe(1)
    const waiting = send(lines('POST /one HTTP/1.1', 'Host: a', 'Expect: 100-continue', 'Content-Length: 5'))
    for (let check = 0; check < 2; check++) {
      const slow = send(post)
      await until(() => statusesIn(slow.text())).toEqual([408])
    }
    expect(waiting.text()).toBe('')
    first.socket.destroy()
    await until(() => statusesIn(waiting.text())).toEqual([100])
    // It has been asked now.
    await until(() => statusesIn(waiting.text())).toEqual([100, 408])
  })
})

it('a client that does not read its response is cut off, and so is the upstream', async () => {
  await start({ responseTimeoutMs: 500 })
  upstream.answerWith(`${lines('HTTP/1.1 200 OK', 'Content-Length: 50000000')}${'x'.repeat(50_000_000)}`)
  const client = send(GET)
  client.socket.pause()
  await until(() => upstream.sockets.size).toBe(1)
  await until(() => upstream.sockets.size).toBe(0)
})

describe('requests on one connection', () => {
  it('requests on one connection are answered up to the bound; then it closes, and the others reach nobody', async () => {
    await start({ maxPipelined: 4 })
    const client = send(GET.repeat(2_000))
    await client.closed
    expect(statusesIn(client.text())).toEqual([200, 200, 200, 200])
    expect(client.text().match(/^Connection: close/gim)).toHaveLength(1)
    expect(upstream.received.join('').match(/GET /g)).toHaveLength(4)
  })

  it('requests on one connection may be as many as one likes, one after the other', async () => {
    await start({ maxPipelined: 1 })
    const client = send(GET)
    for (let request = 1; request <= 5; request++) {
      await until(() => statusesIn(client.text()).length).toBe(request)
      await new Promise(resolve => setImmediate(resolve))
      if (request < 5) client.socket.write(GET)
    }
    expect(statusesIn(client.text())).toEqual([200, 200, 200, 200, 200])
  })

  it('requests that wait for their turn leave the upstream when their client does', async () => {
    await start({})
    upstream.fallSilent()
    const client = send(GET.repeat(3))
    await until(() => upstream.received.filter(Boolean).length).toBe(3)
    client.socket.destroy()
    await until(() => upstream.sockets.size).toBe(0)
  })
})

it('a client has as many requests in flight as it may; one more is 429 and charged nothing', async () => {
  await start({ maxClientRequests: 3 }, { limit: 4 })
  upstream.fallSilent()
  const waiting = [send(GET), send(GET), send(GET)]
  await until(() => upstream.received.filter(Boolean).length).toBe(3)
  const rejected = send(GET)
  await until(() => statusesIn(rejected.text())).toEqual([429])
  expect(rejected.text()).toMatch(/^Retry-After: 1\r$/m)
  expect(rejected.text()).not.toMatch(/x-ratelimit/i)
  for (const { socket } of waiting) socket.destroy()
  await until(() => upstream.sockets.size).toBe(0)
  upstream.answerWith(lines('HTTP/1.1 200 OK', 'Content-Length: 0'))
  const served = send(GET)
  await until(() => served.text()).toMatch(/^HTTP\/1\.1 200 .*X-RateLimit-Remaining: 0\r/s)
})

it('the upstream has as many requests as it may; one more is 503', async () => {
  await start({ maxUpstreamConnections: 2 })
  upstream.fallSilent()
  send(GET)
  send(GET)
  await until(() => upstream.received.filter(Boolean).length).toBe(2)
  const rejected = send(GET)
  await until(() => statusesIn(rejected.text())).toEqual([503])
  expect(upstream.sockets.size).toBe(2)
})

it('a request that fails in the gateway gives its place back', async () => {
  const limiter = createLimiter({ config: defineConfig({}) })
  const refund = () => {
    throw new Error('broken')
  }
  await start({ maxClientRequests: 2, maxUpstreamConnections: 1 }, { limiter: changed(limiter, { refund }) })
  upstream.fallSilent()
  send(GET)
  await until(() => upstream.received.filter(Boolean).length).toBe(1)
  for (let request = 0; request < 2; request++) {
    const failed = send(GET)
    await until(() => statusesIn(failed.text())).toEqual([500])
  }
})

describe('connections of one client', () => {
  it('a client has as many connections as it may; one more is closed', async () => {
    await start({ maxClientConnections: 2 })
    const [one] = [send(GET), send(GET)]
    await until(() => statusesIn(one?.text() ?? '')).toEqual([200])
    const third = send(GET)
    await third.closed
    expect(third.text()).toBe('')
    one?.socket.destroy()
    await until(async () => {
      const again = send(GET)
      await Promise.race([again.closed, until(() => again.text()).not.toBe('')])
      return statusesIn(again.text())
    }).toEqual([200])
  })

  it('connections of a trusted proxy are not counted', async () => {
    await start({ maxClientConnections: 1 }, { trustedProxies: ['127.0.0.1'] })
    const all = [send(GET), send(GET), send(GET)]
    for (const client of all) await until(() => statusesIn(client.text())).toEqual([200])
  })
})

it('bytes that an upstream sends unasked reach nobody as an answer', async () => {
  await start({})
  const first = send(GET)
  await until(() => statusesIn(first.text())).toEqual([200])
  for (const socket of upstream.sockets) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison')
  await until(() => upstream.sockets.size).toBe(0)
  first.socket.write(GET)
  await until(() => statusesIn(first.text())).toEqual([200, 200])
  expect(first.text()).not.toContain('poison')
})

it('CONNECT is rejected, the bytes after it are discarded and the socket closed', async () => {
  await start({})
  const client = send(`${lines('CONNECT x:1 HTTP/1.1', 'Host: x:1')}${'x'.repeat(100_000)}`)
  await client.closed
  expect(statusesIn(client.text())).toEqual([501])
})
