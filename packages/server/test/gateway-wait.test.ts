/** A rule's `wait` at the gateway: requests are held until there is room, and not longer than the gateway serves. */

import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, get, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, it } from 'vitest'
import { serveHeadgate } from './support/headgate-process.js'

const POLICY = `policies:
  one: { algorithm: concurrency, limit: 1 }
  rate: { algorithm: sliding-window-log, limit: 1, window: 200ms }
default: { policy: one }
identify: [ip]
rules:
  - { name: slow, match: { path: /slow/* }, policy: one, wait: { atMost: 1m, queue: 2 } }
  - { name: rate, match: { path: /rate }, policy: rate, wait: { atMost: 1m } }
`
const folder = mkdtempSync(join(tmpdir(), 'headgate-wait-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** A gateway in front of an upstream that answers when it is told to. */
async function startSlow() {
  const asked: { readonly path: string; readonly res: ServerResponse }[] = []
  const upstream = createServer((req, res) => void asked.push({ path: req.url ?? '', res }))
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    upstream.close()
    upstream.closeAllConnections()
  })
  const config = join(folder, 'headgate.yaml')
  writeFileSync(config, POLICY)
  const to = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const served = await serveHeadgate('--config', config, '--upstream', to)
  closers.push(() => served.child.kill('SIGKILL'))
  const { gatewayUrl, adminUrl } = served
  const metric = async (line: RegExp) =>
    Number(line.exec(await (await fetch(`${adminUrl}/metrics`)).text())?.[1] ?? 0)
  return { ...served, asked, gatewayUrl, metric }
}

/** Asks on a connection of its own; the request is out when this returns. */
async function ask(url: string) {
  let status: number | null = null
  const request = get(url, { agent: false }, res => {
    status = res.statusCode ?? 0
    res.resume()
  })
  request.on('error', () => {})
  await once(request, 'finish')
  return { status: () => status, leave: () => request.destroy() }
}

const ALLOWED = /^rate_limit_allowed_total (\d+)$/m
const BLOCKED = /^rate_limit_blocked_total (\d+)$/m
const WAITED = /^rate_limit_latency_seconds_count\{source="memory",waited="yes"\} (\d+)$/m

it('the gateway holds requests in order, within its bounds, and forgets one whose client leaves', async () => {
  const { gatewayUrl, asked, metric } = await startSlow()
  const all = [await ask(`${gatewayUrl}/slow/1`)]
  await expect.poll(() => asked.length).toBe(1)
  // The queue has room for two; who comes third is denied, which also tells that the two before it wait.
  for (const number of [2, 3]) {
    all.push(await ask(`${gatewayUrl}/slow/${number}`))
    // A round trip, so that the gateway has read what came before it.
    await metric(ALLOWED)
  }
  const third = await ask(`${gatewayUrl}/slow/beyond`)
  await expect.poll(third.status).toBe(429)
  all[1]?.leave()
  await expect.poll(() => metric(BLOCKED)).toBe(2)
  all.push(await ask(`${gatewayUrl}/slow/4`))
  await metric(ALLOWED)
  for (const number of [0, 2, 3]) {
    await expect.poll(() => asked.at(-1)?.res.writableEnded).toBe(false)
    asked.at(-1)?.res.end()
    await expect.poll(() => all[number]?.status()).toBe(200)
    if (number < 3) await expect.poll(() => asked.at(-1)?.res.writableEnded).toBe(false)
  }
  expect(asked.map(({ path }) => path)).toEqual(['/slow/1', '/slow/3', '/slow/4'])
  expect([await metric(ALLOWED), await metric(BLOCKED), await metric(WAITED)]).toEqual([3, 2, 3])
})

it('a gateway that stops denies what waits, and finishes what is in flight', async () => {
  const { gatewayUrl, asked, end, metric } = await startSlow()
  const first = await ask(`${gatewayUrl}/slow/1`)
  await expect.poll(() => asked.length).toBe(1)
  const second = await ask(`${gatewayUrl}/slow/2`)
  await metric(ALLOWED)
  expect(second.status()).toBeNull()
  const ended = end('SIGTERM')
  await expect.poll(second.status).toBe(429)
  expect(first.status()).toBeNull()
  asked[0]?.res.end()
  await expect.poll(first.status).toBe(200)
  const { code, stdout } = await ended
  expect(code).toBe(0)
  expect(stdout).not.toContain('cut')
})

it('forward auth answers a proxy when there is room for its client', async () => {
  const { adminUrl, metric } = await startSlow()
  const headers = {
    'x-forwarded-method': 'GET',
    'x-forwarded-uri': '/rate',
    'x-forwarded-for': '203.0.113.9',
  }
  const ask = async () => (await fetch(`${adminUrl}/v1/forward-auth`, { headers })).status
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([200, 200, 200])
  expect([await metric(ALLOWED), await metric(BLOCKED), await metric(WAITED)]).toEqual([3, 0, 2])
})
