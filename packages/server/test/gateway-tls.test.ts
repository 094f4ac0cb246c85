/** The gateway under TLS: HTTP/1.1 and HTTP/2 (promises S10 and S31). */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { certificate } from './support/certificate.js'
import { type HeadgateProcess, serveHeadgate } from './support/headgate-process.js'
import { startRawUpstream } from './support/raw-upstream.js'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-tls-'))
const [certFile, keyFile, policy] = ['cert.pem', 'key.pem', 'headgate.yaml'].map(name =>
  join(folder, name),
) as [string, string, string]
let ca = ''
beforeAll(async () => {
  const { cert, key } = await certificate('127.0.0.1')
  ca = cert
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
})
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function serve(limit: number, ...args: string[]): Promise<HeadgateProcess> {
  return servePolicy(
    `policies:\n  api: { algorithm: sliding-window-log, limit: ${limit}, window: 1h }\ndefault: { policy: api }\n`,
    ...args,
  )
}

async function servePolicy(text: string, ...args: string[]): Promise<HeadgateProcess> {
  writeFileSync(policy, text)
  const served = await serveHeadgate(
    '--config',
    policy,
    '--demo',
    '--tls-cert',
    certFile,
    '--tls-key',
    keyFile,
    ...args,
  )
  closers.push(() => served.child.kill('SIGKILL'))
  return served
}

function session(url: string): ClientHttp2Session {
  const client = connectHttp2(url, { ca })
  client.on('error', () => {})
  closers.push(() => client.destroy())
  return client
}

/** Sends a request over HTTP/2; resolves to status, headers and body. */
function ask(client: ClientHttp2Session, headers: Record<string, string>, body?: string) {
  return new Promise<{ status: number; headers: Record<string, unknown>; text: string }>(
    (resolve, reject) => {
      const stream = client.request(headers, { endStream: body === undefined })
      let text = ''
      let answer: Record<string, unknown> = {}
      stream.on('response', given => {
        answer = given
      })
      stream.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      stream
        .on('end', () => resolve({ status: Number(answer[':status']), headers: answer, text }))
        .on('error', reject)
      if (body !== undefined) stream.end(body)
    },
  )
}

it('HTTP/2 requests are handled like all others: decided, forwarded, answered', async () => {
  const { gatewayUrl, end } = await serve(3)
  expect(gatewayUrl).toMatch(/^https:/)
  const client = session(gatewayUrl)
  const got = await ask(
    client,
    { ':path': '/a?b=1', ':method': 'POST', 'x-forwarded-for': '6.6.6.6', cookie: 'a=1' },
    'hello',
  )
  expect(got.status).toBe(200)
  expect(got.headers).toMatchObject({ 'x-ratelimit-remaining': '2', 'x-request-id': expect.any(String) })
  expect(JSON.parse(got.text)).toMatchObject({
    method: 'POST',
    path: '/a?b=1',
    bodyBytes: 5,
    headers: {
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': new URL(gatewayUrl).host,
    },
  })
  expect(got.text).not.toMatch(/6\.6\.6\.6|:path|:authority/)
  expect((await ask(client, { ':path': '/', ':authority': 'a', host: 'other.example' })).status).toBe(400)
  for (const status of [200, 200, 429]) expect((await ask(client, { ':path': '/' })).status).toBe(status)
  expect((await end('SIGTERM')).stderr).toBe('')
})

it('a client that does not offer HTTP/2 gets HTTP/1.1', async () => {
  const { gatewayUrl } = await serve(10)
  const answer = await new Promise<string>((resolve, reject) => {
    const asked = request(gatewayUrl, { ca, agent: false }, response => {
      let text = `${response.httpVersion} `
      response.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve(text))
    })
    asked.on('error', reject).end()
  })
  expect(answer).toMatch(/^1\.1 [\s\S]*"x-forwarded-proto": "https"/)
})

it('many streams in one packet get exactly what the limit is, and streams that are reset stay charged', async () => {
  const { gatewayUrl } = await serve(20)
  const client = session(gatewayUrl)
  await new Promise(resolve => client.once('remoteSettings', resolve))
  const answers = await Promise.all(Array.from({ length: 60 }, () => ask(client, { ':path': '/' })))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(20)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(40)
})

it('a stream that is reset as soon as it is asked is charged', async () => {
  const upstream = await startRawUpstream()
  closers.push(upstream.close)
  upstream.fallSilent()
  const { gatewayUrl, adminUrl } = await serve(5, '--upstream', upstream.url)
  const client = session(gatewayUrl)
  for (let index = 0; index < 5; index++) {
    const stream = client.request({ ':path': '/' })
    stream.on('error', () => {})
    await expect.poll(() => upstream.received.length).toBe(index + 1)
    stream.close(constants.NGHTTP2_CANCEL)
  }
  expect((await ask(client, { ':path': '/' })).status).toBe(429)
  expect((await fetch(`${adminUrl}/livez`)).status).toBe(200)
})

it('a stream that is reset while it waits for room leaves its place to the next', async () => {
  const upstream = await startRawUpstream()
  closers.push(upstream.close)
  upstream.fallSilent()
  const { gatewayUrl, adminUrl } = await servePolicy(
    `policies:
  one: { algorithm: concurrency, limit: 1 }
default: { policy: one }
rules:
  - { name: slow, match: { path: /* }, policy: one, wait: { atMost: 1m, queue: 20 } }
`,
    '--upstream',
    upstream.url,
  )
  const client = session(gatewayUrl)
  const open = () => {
    const stream = client.request({ ':path': '/' })
    stream.on('error', () => {})
    return stream
  }
  const held = open()
  await expect.poll(() => upstream.received.length, { timeout: 10_000 }).toBe(1)
  const waiting = Array.from({ length: 20 }, open)
  // There is no room for another one, so the twenty wait.
  expect((await ask(client, { ':path': '/' })).status).toBe(429)
  for (const stream of waiting) stream.close(constants.NGHTTP2_CANCEL)
  const blocked = async () => {
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
    return Number(/^rate_limit_blocked_total (\d+)$/m.exec(metrics)?.[1] ?? 0)
  }
  await expect.poll(blocked, { timeout: 10_000 }).toBe(21)
  const next = open()
  held.close(constants.NGHTTP2_CANCEL)
  await expect.poll(() => upstream.received.length, { timeout: 10_000 }).toBe(2)
  next.close(constants.NGHTTP2_CANCEL)
})

it('a flood of streams that are reset ends the session, not the gateway', async () => {
  const { gatewayUrl, adminUrl, child } = await serve(1_000_000)
  const client = session(gatewayUrl)
  const ended = new Promise<number>(resolve => client.once('goaway', resolve))
  for (let index = 0; index < 10_000 && !client.closed && !client.destroyed; index++) {
    const stream = client.request({ ':path': '/' })
    stream.on('error', () => {})
    stream.close(constants.NGHTTP2_CANCEL)
    if (index % 50 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  expect(await ended).not.toBe(constants.NGHTTP2_NO_ERROR)
  client.destroy()
  expect(child.exitCode).toBe(null)
  expect((await fetch(`${adminUrl}/livez`)).status).toBe(200)
  expect((await ask(session(gatewayUrl), { ':path': '/' })).status).toBe(200)
})

it('a header that never ends ends the connection', async () => {
  const { gatewayUrl, adminUrl } = await serve(1_000)
  const socket = connectTls({
    port: Number(new URL(gatewayUrl).port),
    host: '127.0.0.1',
    ca,
    ALPNProtocols: ['h2'],
  })
  socket.on('error', () => {})
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()))
  socket.resume()
  const [HEADERS, SETTINGS, CONTINUATION] = [1, 4, 9]
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  socket.write(frame(SETTINGS, 0, ''))
  socket.write(frame(HEADERS, 1, '\x82\x87\x84'))
  // Each a literal header without indexing, so that nothing of it counts against HPACK's table.
  const field = `\x00\x01a\x7f\x81\x00${'x'.repeat(256)}`
  for (let sent = 0; sent < 5_000 && !socket.destroyed; sent++) {
    if (!socket.write(frame(CONTINUATION, 1, field.repeat(8)))) {
      await Promise.race([closed, new Promise(resolve => socket.once('drain', resolve))])
    }
  }
  await closed
  expect((await fetch(`${adminUrl}/livez`)).status).toBe(200)
})

/** Builds an HTTP/2 frame without flags, so that a header continues in the next. */
function frame(type: number, stream: number, payload: string): Buffer {
  const bytes = Buffer.from(payload, 'latin1')
  const head = Buffer.alloc(9)
  head.writeUIntBE(bytes.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, bytes])
}

it('another certificate is in use when its files are replaced, and a broken one is not', async () => {
  const { gatewayUrl, stdout } = await serve(10)
  const { port } = new URL(gatewayUrl)
  const shown = () =>
    new Promise<string>(resolve => {
      const socket = connectTls({ port: Number(port), host: '127.0.0.1', rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().fingerprint256)
        socket.destroy()
      })
    })
  const before = await shown()
  const next = await certificate('127.0.0.1')
  for (const [file, text] of [
    [certFile, next.cert],
    [keyFile, next.key],
  ] as const) {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  await expect.poll(shown).not.toBe(before)
  const after = await shown()
  writeFileSync(keyFile, 'nonsense')
  await expect.poll(stdout).toContain('NOT in use, the last good certificate stays')
  expect(await shown()).toBe(after)
  writeFileSync(keyFile, next.key)
})

it('a file beside the certificate may change: what is in use is not taken for new', async () => {
  const { gatewayUrl, stdout } = await serve(10)
  writeFileSync(join(folder, 'gateway.log'), 'a line\n')
  // Longer than changes are given to settle, so that this one has been looked at.
  await new Promise(resolve => setTimeout(resolve, 500))
  const next = await certificate('127.0.0.1')
  writeFileSync(certFile, next.cert)
  writeFileSync(keyFile, next.key)
  await expect.poll(stdout, { timeout: 10_000 }).toContain('reloaded')
  expect(stdout().match(/: reloaded/g)).toHaveLength(1)
  expect(gatewayUrl).toMatch(/^https:/)
})

it.each([
  [['--tls-cert', certFile], '--tls-key: expected one beside --tls-cert'],
  [['--tls-key', keyFile], '--tls-cert: expected one beside --tls-key'],
  [
    ['--tls-cert', '/none', '--tls-key', keyFile],
    '--tls-cert: expected a file that can be read; got no such file',
  ],
  [['--tls-cert', policy, '--tls-key', keyFile], '--tls-cert: expected a file in PEM'],
])('a wrong TLS option is rejected: %j', async (args, message) => {
  writeFileSync(policy, 'tiers: default\n')
  const { code, err } = await runInProcess(['serve', '--config', policy, '--demo', ...args])
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
})
