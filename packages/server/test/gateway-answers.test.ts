/** What the gateway answers itself is counted, each request once, and said in the log. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type HeadgateProcess, serveHeadgate } from './support/headgate-process.js'
import { lines, rawRequest } from './support/raw-http.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-answers-'))
const file = join(folder, 'headgate.yaml')
const held: (() => void)[] = []
const upstream = createServer((req, res) => {
  if (req.url === '/held') held.push(() => res.end())
  else res.end()
})
let served: HeadgateProcess

beforeAll(async () => {
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const { port } = upstream.address() as AddressInfo
  writeFileSync(
    file,
    `policies: { api: { algorithm: sliding-window-log, limit: 3, window: 1h } }
default: { policy: api }
identify: [ip]
cors: { origins: [https://app.example.com] }
routes: [{ match: { host: known.example.com }, upstream: "http://127.0.0.1:${port}" }]
`,
  )
  served = await serveHeadgate('--config', file, '--max-client-requests', '1', '--max-headers', '20')
})
afterAll(async () => {
  await served.end('SIGTERM')
  upstream.close()
  upstream.closeAllConnections()
  rmSync(folder, { recursive: true, force: true })
})

type Counts = Readonly<Record<string, number>>

/** The answers by `reason status`, and the decisions by outcome. */
async function counts(): Promise<{ readonly answers: Counts; readonly decisions: Counts }> {
  const text = await (await fetch(`${served.adminUrl}/metrics`)).text()
  const read = (pattern: RegExp) =>
    Object.fromEntries([...text.matchAll(pattern)].map(match => [match[1] ?? '', Number(match[2])]))
  const answers = read(/^rate_limit_gateway_answers_total\{reason="([^}]+)\} (\d+)$/gm)
  const decisions = read(/^rate_limit_(allowed|blocked)_total (\d+)$/gm)
  const plain = (key: string) => key.replace('",status="', ' ').replace('"', '')
  return {
    answers: Object.fromEntries(Object.entries(answers).map(([key, count]) => [plain(key), count])),
    decisions,
  }
}

const ask = async (...head: string[]) =>
  (await rawRequest(served.gatewayUrl, lines(...head, 'Connection: close'))).status
const HOST = 'Host: known.example.com'

it('every request is counted once, as a decision or as an answer of the gateway', async () => {
  const statuses = [
    await ask('GET / HTTP/1.1', 'Host: a b'),
    await ask('GET / HTTP/1.1', HOST, ...Array.from({ length: 30 }, (_, index) => `x-${index}: 1`)),
    await ask('GET / HTTP/1.1', HOST, 'Transfer-Encoding: gzip, chunked'),
    await ask('GET http://other/ HTTP/1.1', HOST),
    await ask('GET / HTTP/1.1', HOST, 'bad header'),
    await ask('GET / HTTP/1.1', HOST, `x: ${'x'.repeat(20_000)}`),
    await ask(
      'OPTIONS / HTTP/1.1',
      HOST,
      'Origin: https://app.example.com',
      'Access-Control-Request-Method: PUT',
    ),
    await ask('GET / HTTP/1.1', HOST),
    await ask('GET / HTTP/1.1', HOST),
    await ask('GET / HTTP/1.1', 'Host: unknown.example.com'),
    await ask('GET / HTTP/1.1', HOST),
  ]
  expect(statuses).toEqual([400, 431, 501, 400, 400, 431, 204, 200, 200, 404, 429])
  const { answers, decisions } = await counts()
  expect(decisions).toEqual({ allowed: 3, blocked: 1 })
  expect(answers).toEqual({
    'host 4xx': 1,
    'headers 4xx': 1,
    'framing 5xx': 1,
    'target 4xx': 1,
    'malformed 4xx': 1,
    'header-size 4xx': 1,
    'preflight 2xx': 1,
    'no-route 4xx': 1,
  })
  // The request without a route was decided first, so it is in both.
  const total = [...Object.values(answers), ...Object.values(decisions)].reduce((sum, count) => sum + count)
  expect(total).toBe(statuses.length + 1)
  expect(served.stdout()).toMatch(/^431 for ip:127\.0\.0\.1, headers: headers: expected at most 20/m)
})

it('a client with too many requests in flight is told apart from a limit', async () => {
  writeFileSync(file, readFileSync(file, 'utf8').replace('limit: 3', 'limit: 1000'))
  await expect.poll(() => served.stdout()).toContain('reloaded')
  const first = ask('GET /held HTTP/1.1', HOST)
  await expect.poll(() => held.length).toBe(1)
  expect(await ask('GET / HTTP/1.1', HOST)).toBe(429)
  held[0]?.()
  expect(await first).toBe(200)
  expect((await counts()).answers).toMatchObject({ 'client-requests 4xx': 1 })
})

it('a peer that forwards without being trusted is reported once', async () => {
  for (let time = 0; time < 3; time++) await ask('GET / HTTP/1.1', HOST, 'X-Forwarded-For: 192.0.2.1')
  const told = served.stdout().match(/sends x-forwarded-for and is not in trustedProxies/g)
  expect(told).toHaveLength(1)
})

it('bytes that are no request get 400, and a connection that breaks is nobody’s mistake', async () => {
  const before = (await counts()).answers['malformed 4xx'] ?? 0
  const { port, hostname } = new URL(served.gatewayUrl)
  await new Promise<void>(resolve => {
    const socket = connect(Number(port), hostname, () => socket.resetAndDestroy())
    socket.on('close', () => resolve())
  })
  expect(await ask('\x16\x03\x01')).toBe(400)
  expect((await counts()).answers['malformed 4xx']).toBe(before + 1)
})
