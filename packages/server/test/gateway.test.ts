import { createServer, request, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, memoryStore, type RuleLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterEach, describe, expect, it } from 'vitest'
import { changed } from '../../headgate/test/support/changed.ts'
import { lines, rawRequest } from './support/raw-http.js'
import { startRawUpstream } from './support/raw-upstream.js'
import { startGateway, type TestGatewayOptions } from './support/test-gateway.js'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function gatewayTo(upstreamUrl: string, options?: TestGatewayOptions) {
  const gateway = await startGateway(upstreamUrl, options)
  closers.push(gateway.close)
  return gateway
}

async function rawUpstream() {
  const upstream = await startRawUpstream()
  closers.push(upstream.close)
  return upstream
}

async function httpUpstream(
  handler: Parameters<typeof createServer>[1],
): Promise<{ url: string; server: Server }> {
  const server = createServer(handler)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closers.push(
    () =>
      new Promise(resolve => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

/** A limiter whose store throws synchronously, as no store should, so that nothing guards it. */
function brokenLimiter(onStoreFailure?: 'closed'): RuleLimiter {
  const store = changed(memoryStore(), { decide: () => Promise.reject(new Error('store is gone')) })
  const policies = { api: slidingWindowLog({ limit: 2, window: '1m' }) }
  const config = defineConfig({
    policies,
    default: { policy: 'api' },
    ...(onStoreFailure && { onStoreFailure }),
  })
  return createLimiter({ config, store })
}

describe('the limiter in the gateway', () => {
  it('headers of the limiter go with every answer, and a denial never reaches the upstream', async () => {
    const upstream = await rawUpstream()
    const { url, logged } = await gatewayTo(upstream.url, { limit: 2 })
    const statuses: number[] = []
    for (let index = 0; index < 4; index++) statuses.push((await fetch(url)).status)
    expect(statuses).toEqual([200, 200, 429, 429])
    expect(upstream.received.join('').match(/^GET /gm)).toHaveLength(2)

    const denied = await fetch(url)
    expect(denied.headers.get('content-type')).toBe('application/problem+json')
    expect(denied.headers.get('x-ratelimit-remaining')).toBe('0')
    // The seconds since the first request are over.
    expect(denied.headers.get('retry-after')).toMatch(/^(60|5\d)$/)
    expect(await denied.json()).toMatchObject({ status: 429, 'violated-policies': ['api.log-1m'] })
    // Three denials, one line.
    expect(logged).toEqual([
      expect.stringMatching(/^429 for ip:127\.0\.0\.1: policy api allows 2 a minute; next in \d+ s$/),
    ])
  })

  it('a denial is a page for browsers, and a problem for everybody else', async () => {
    const { url } = await gatewayTo((await rawUpstream()).url, { limit: 0 })
    const denied = await fetch(url, { headers: { accept: 'text/html' } })
    expect(denied.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(await denied.text()).toMatch(/^<!doctype html>/)
    const problem = await fetch(url, { headers: { accept: '*/*' } })
    expect(problem.headers.get('content-type')).toBe('application/problem+json')
    expect(await problem.text()).toMatch(/^\{.*\}\n$/)
  })

  it('a place is held for as long as a request is in flight', async () => {
    const upstream = await rawUpstream()
    const config = defineConfig({
      policies: { streams: { algorithm: 'concurrency', limit: 1 } },
      default: { policy: 'streams' },
    })
    const { url } = await gatewayTo(upstream.url, { config })
    upstream.fallSilent()
    const client = new AbortController()
    const left = expect(fetch(url, { signal: client.signal })).rejects.toThrow()
    await expect.poll(() => upstream.received.length).toBe(1)
    expect((await fetch(url)).status).toBe(429)
    client.abort()
    await left
    upstream.answerWith(lines('HTTP/1.1 200 OK', 'Content-Length: 0'))
    await expect.poll(async () => (await fetch(url)).status).toBe(200)
  })

  it('the limiter is asked before the body is read: a denied upload is answered at once and not drained', async () => {
    const upstream = await rawUpstream()
    const { url } = await gatewayTo(upstream.url, { limit: 0 })
    const part = 'x'.repeat(32 * 1024)
    const { port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1')
    let reply = ''
    socket.on('data', chunk => {
      reply += chunk
    })
    socket.on('error', () => {})
    const closed = new Promise(resolve => socket.on('close', resolve))
    socket.write(lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 1000000000'))
    const began = performance.now()
    while (!socket.destroyed && socket.writable && performance.now() - began < 5_000) {
      socket.write(part)
      await sleep(5)
    }
    await closed
    expect(reply).toMatch(/^HTTP\/1\.1 429 /)
    expect(reply).toMatch(/^Connection: close\r$/m)
    // 64 KB, and what the two kernels between us buffered.
    expect(socket.bytesWritten).toBeLessThan(16 * 1024 * 1024)
    expect(upstream.received).toEqual([])
  })

  it('a denial does not cost a connection when the denied body is small', async () => {
    const { url } = await gatewayTo((await rawUpstream()).url, { limit: 0 })
    const post = `${lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 5')}hello`
    const reply = await rawRequest(url, [post, post])
    expect(reply.text.match(/^HTTP\/1\.1 429 /gm)).toHaveLength(2)
  })

  it('the limiter is asked before 100 Continue is sent', async () => {
    const upstream = await rawUpstream()
    const { url } = await gatewayTo(upstream.url, { limit: 1 })
    const head = lines('PUT / HTTP/1.1', 'Host: a', 'Content-Length: 5', 'Expect: 100-continue')
    const allowed = await rawRequest(url, [head, 'hello'])
    expect(allowed.text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
    expect(upstream.received[0]).not.toMatch(/expect/i)
    expect(upstream.received[0]).toMatch(/\r\n\r\nhello$/)
    const denied = await rawRequest(url, head)
    expect(denied.status).toBe(429)
    expect(denied.text).not.toContain('100 Continue')
  })

  it('a client of HTTP/1.0 gets no 100 Continue, which it does not know', async () => {
    const { url } = await gatewayTo((await rawUpstream()).url)
    const head = lines('PUT / HTTP/1.0', 'Host: a', 'Content-Length: 5', 'Expect: 100-continue')
    const reply = await rawRequest(url, [head, 'hello'])
    expect(reply.text).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('a limiter at fault lets requests pass and says so once', async () => {
    const limiter = brokenLimiter()
    const { url, logged } = await gatewayTo((await rawUpstream()).url, { limiter })
    for (let index = 0; index < 3; index++) {
      const answer = await fetch(url)
      expect(answer.status).toBe(200)
      expect(answer.headers.has('x-ratelimit-limit')).toBe(false)
    }
    expect(logged).toEqual(['limiter failed, requests pass unchecked: store is gone'])
    expect(limiter.counts().faults).toBe(3)
  })

  it('a limiter at fault rejects with 503 where the file says closed, and nothing is forwarded', async () => {
    const limiter = brokenLimiter('closed')
    const upstream = await rawUpstream()
    const { url, logged } = await gatewayTo(upstream.url, { limiter })
    for (let index = 0; index < 3; index++) {
      const answer = await fetch(url)
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
      expect(answer.headers.get('content-type')).toBe('application/problem+json')
      expect(answer.headers.has('x-ratelimit-limit')).toBe(false)
    }
    expect(upstream.received).toEqual([])
    expect(logged[0]).toBe('limiter failed, requests are rejected: store is gone')
    expect(limiter.counts().faults).toBe(3)
  })
})

describe('between client and upstream', () => {
  it('bodies stream both ways', async () => {
    const { url: upstreamUrl } = await httpUpstream((req, res) => req.pipe(res))
    const { url } = await gatewayTo(upstreamUrl)
    const client = request(url, { method: 'POST' })
    const answered = new Promise<import('node:http').IncomingMessage>(resolve =>
      client.on('response', resolve),
    )
    client.write('first')
    const answer = await answered
    // The first part has come back although the request is not finished.
    const first = await new Promise<string>(resolve => answer.once('data', chunk => resolve(String(chunk))))
    expect(first).toBe('first')
    client.end('second')
    let rest = ''
    for await (const chunk of answer) rest += chunk
    expect(rest).toBe('second')
  })

  it('the head of an answer is passed on while its body is still to come, and each part of that as it comes', async () => {
    let answer: ServerResponse | null = null
    const upstream = await httpUpstream((_, res) => {
      answer = res
      res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    })
    const gateway = await gatewayTo(upstream.url)
    const response = await fetch(gateway.url)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const read = async () => Buffer.from((await reader.read()).value ?? []).toString('latin1')
    const events = answer as unknown as ServerResponse
    events.write('data: 1\n\n')
    expect(await read()).toBe('data: 1\n\n')
    events.end('data: \xff\n\n', 'latin1')
    expect(await read()).toBe('data: \xff\n\n')
    expect((await reader.read()).done).toBe(true)
  })

  it('a small body of every byte arrives as it was sent', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const upstream = await httpUpstream((req, res) => {
      if (req.url === '/chunked') res.write(bytes)
      res.end(req.url === '/chunked' ? undefined : bytes)
    })
    const gateway = await gatewayTo(upstream.url)
    for (const path of ['/', '/chunked']) {
      const body = Buffer.from(await (await fetch(gateway.url + path)).arrayBuffer())
      expect(body.equals(bytes), path).toBe(true)
    }
  })

  it('a large body arrives whole', async () => {
    const { url: upstreamUrl } = await httpUpstream((req, res) => req.pipe(res))
    const { url } = await gatewayTo(upstreamUrl)
    const body = Buffer.alloc(5_000_000, 'headgate')
    const answer = await fetch(url, { method: 'PUT', body })
    expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true)
  })

  it('an upstream that is down is 502, and the reason is logged', async () => {
    const upstream = await startRawUpstream()
    await upstream.close()
    const { url, logged } = await gatewayTo(upstream.url)
    const answer = await fetch(url, { method: 'POST', body: 'x'.repeat(100_000) })
    expect(answer.status).toBe(502)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(answer.headers.get('x-ratelimit-limit')).toBe('1000')
    expect(await answer.json()).toMatchObject({ status: 502, detail: 'The upstream could not be reached.' })
    expect(logged).toEqual([`502: upstream ${upstream.url} could not be reached (ECONNREFUSED)`])
  })

  it('an upstream that is silent is 504', async () => {
    const upstream = await rawUpstream()
    upstream.fallSilent()
    const { url } = await gatewayTo(upstream.url, { upstreamTimeoutMs: 100 })
    const answer = await fetch(url)
    expect(answer.status).toBe(504)
    await expect.poll(() => upstream.sockets.size).toBe(0)
  })

  it('an answer that breaks off does not look whole', async () => {
    const { url: upstreamUrl } = await httpUpstream((req, res) => {
      res.writeHead(200, { 'Content-Length': '100' })
      res.write('half')
      setTimeout(() => req.socket.destroy(), 20)
    })
    const { url } = await gatewayTo(upstreamUrl)
    const answer = await fetch(url)
    expect(answer.status).toBe(200)
    await expect(answer.text()).rejects.toThrow()
  })

  it('a client that leaves takes its request to the upstream with it', async () => {
    const upstream = await rawUpstream()
    upstream.fallSilent()
    const { url } = await gatewayTo(upstream.url)
    const leaving = new AbortController()
    const asked = fetch(url, { signal: leaving.signal })
    await expect.poll(() => upstream.received.length).toBe(1)
    const [carrier] = upstream.sockets
    leaving.abort()
    await expect(asked).rejects.toThrow('abort')
    await expect.poll(() => carrier?.destroyed).toBe(true)
  })

  it('a kept connection that the upstream has closed is replaced without the client noticing', async () => {
    const { url: upstreamUrl, server } = await httpUpstream((_req, res) => res.end('ok'))
    const { url } = await gatewayTo(upstreamUrl)
    for (let round = 0; round < 20; round++) {
      expect((await fetch(url)).status).toBe(200)
      server.closeAllConnections()
    }
  })

  it('an upstream that answers before it has the whole body is heard', async () => {
    const { url: upstreamUrl } = await httpUpstream((_req, res) => {
      res.writeHead(413, { Connection: 'close' })
      res.end('too much')
    })
    const { url } = await gatewayTo(upstreamUrl)
    const head = lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 1000000')
    const reply = await rawRequest(url, [head, 'x'.repeat(10_000)])
    expect(reply.status).toBe(413)
    expect(reply.text).toContain('too much')
  })

  it('HEAD, 204 and 304 have no body', async () => {
    const { url: upstreamUrl } = await httpUpstream((req, res) => {
      res.writeHead(Number(req.url?.slice(1)), req.method === 'HEAD' ? { 'Content-Length': '7' } : {})
      res.end()
    })
    const { url } = await gatewayTo(upstreamUrl)
    const head = await fetch(`${url}/200`, { method: 'HEAD' })
    expect(head.headers.get('content-length')).toBe('7')
    expect((await fetch(`${url}/204`)).status).toBe(204)
    expect((await fetch(`${url}/304`)).status).toBe(304)
  })
})
