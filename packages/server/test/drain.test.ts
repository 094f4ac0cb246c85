/** How a gateway under load ends: nothing is reset, streams go on, and what is cut is said. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, get, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, expect, it } from 'vitest'
import { runHeadgate, serveHeadgate } from './support/headgate-process.js'

const POLICY = `policies: { api: { algorithm: sliding-window-counter, limit: 1000000, window: 1m } }
default: { policy: api }
identify: [ip]
`
const folder = mkdtempSync(join(tmpdir(), 'headgate-drain-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** A gateway without limits in front of an upstream. */
async function gatewayTo(listener: RequestListener, ...args: string[]) {
  const upstream = createServer(listener)
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    upstream.close()
    upstream.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const config = join(folder, 'headgate.yaml')
  writeFileSync(config, POLICY)
  const limits = ['--max-client-requests', '0', '--max-client-connections', '0']
  const served = await serveHeadgate('--config', config, '--upstream', url, ...limits, ...args)
  closers.push(() => served.child.kill('SIGKILL'))
  return served
}

/** Asks again and again on one kept connection, until connecting is refused. Counts what was lost on the way. */
async function askUntilClosed(url: string): Promise<{ readonly answered: number; readonly lost: string[] }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let answered = 0
  const lost: string[] = []
  for (;;) {
    const ended = await new Promise<string | null>(resolve => {
      get(url, { agent }, res => {
        res
          .resume()
          .on('end', () => resolve(null))
          .on('error', error => resolve(error.message))
      }).on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    })
    if (ended === 'ECONNREFUSED') break
    if (ended === null) answered++
    else lost.push(ended)
  }
  agent.destroy()
  return { answered, lost }
}

it('of 100 kept connections with a request in flight at SIGTERM, none is reset', async () => {
  // The first request on each connection is answered at once; the second is in flight when the signal comes.
  const held: (() => void)[] = []
  let asked = 0
  const { gatewayUrl, adminUrl, end } = await gatewayTo((_req, res) => {
    if (++asked <= 100) return void res.end('first')
    held.push(() => res.end('second'))
  })
  const clients = Array.from({ length: 100 }, () => askUntilClosed(gatewayUrl))
  await expect.poll(() => held.length, { timeout: 20_000 }).toBe(100)
  const ended = end('SIGTERM')
  await expect.poll(() => fetch(gatewayUrl).catch(() => null)).toBeNull()
  expect((await fetch(`${adminUrl}/readyz`)).status).toBe(503)
  for (const answer of held) answer()
  const outcomes = await Promise.all(clients)
  expect(outcomes.flatMap(({ lost }) => lost)).toEqual([])
  expect(outcomes.reduce((sum, { answered }) => sum + answered, 0)).toBe(200)
  const { code, stdout } = await ended
  expect(code).toBe(0)
  expect(stdout).not.toContain('cut')
})

/** An event a tenth of a second, `events` times. */
const streaming =
  (events: number): RequestListener =>
  (_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    let sent = 0
    const timer = setInterval(() => {
      res.write(`data: ${sent}\n\n`)
      if (++sent < events) return
      clearInterval(timer)
      res.end('data: [DONE]\n\n')
    }, 100)
    res.on('close', () => clearInterval(timer))
  }

const opened = (url: string) =>
  new Promise<IncomingMessage>((resolve, reject) => get(url, resolve).on('error', reject))

async function textOf(stream: IncomingMessage): Promise<string> {
  let text = ''
  try {
    for await (const chunk of stream) text += chunk
  } catch (error) {
    return `${text}${(error as NodeJS.ErrnoException).code}`
  }
  return text
}

it('a stream survives the stop, and the server ends right after it', async () => {
  // Of several rounds the best counts: another program may have had the core at the end of one.
  let leastMs = Number.POSITIVE_INFINITY
  for (let round = 0; round < 4 && leastMs >= 1_000; round++) {
    const { gatewayUrl, end } = await gatewayTo(streaming(20))
    const text = textOf(await opened(gatewayUrl))
    const ended = end('SIGTERM')
    expect(await text).toContain('[DONE]')
    const doneMs = performance.now()
    expect((await ended).code).toBe(0)
    leastMs = Math.min(leastMs, performance.now() - doneMs)
  }
  expect(leastMs).toBeLessThan(1_000)
})

it('a second signal ends it at once, and says how much was cut', async () => {
  const { gatewayUrl, end, child } = await gatewayTo(streaming(1_000))
  const text = textOf(await opened(gatewayUrl))
  const ended = end('SIGTERM')
  await sleep(500)
  const beganMs = performance.now()
  child.kill('SIGTERM')
  const { code, stdout } = await ended
  // Far below the drain timeout.
  expect(performance.now() - beganMs).toBeLessThan(10_000)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^1 connection.* cut, at the second signal$/m)
  expect(await text).toContain('ECONNRESET')
})

it('idle connections are not among those that were cut', async () => {
  // Shorter than idle clients are given.
  const { gatewayUrl, end } = await gatewayTo(
    (req, res) => (req.url === '/idle' ? void res.end('ok') : streaming(1_000)(req, res)),
    '--drain-timeout',
    '100ms',
  )
  const agent = new Agent({ keepAlive: true })
  closers.push(() => agent.destroy())
  const idle = Array.from({ length: 3 }, async () => {
    const res = await new Promise<IncomingMessage>((resolve, reject) =>
      get(`${gatewayUrl}/idle`, { agent }, resolve).on('error', reject),
    )
    await textOf(res)
  })
  await Promise.all(idle)
  const text = textOf(await opened(gatewayUrl))
  const { stdout } = await end('SIGTERM')
  expect(stdout).toMatch(/^1 connection with a request in flight was cut, 0.1 s after the stop began$/m)
  expect(await text).toContain('ECONNRESET')
})

it('during the drain delay it is not ready, and serves', async () => {
  const { gatewayUrl, adminUrl, end } = await gatewayTo(
    (_req, res) => void res.end('ok'),
    '--drain-delay',
    '1500ms',
  )
  const ended = end('SIGTERM')
  await expect.poll(async () => (await fetch(`${adminUrl}/readyz`)).status).toBe(503)
  expect((await fetch(`${adminUrl}/livez`)).status).toBe(200)
  expect((await fetch(gatewayUrl)).status).toBe(200)
  expect((await ended).code).toBe(0)
})

it.each(['5', '-1s', '2d', ''])('a drain timeout of %j is refused', async value => {
  const { code, stderr } = await runHeadgate(['serve', '--demo', '--drain-timeout', value])
  expect([code, stderr]).toEqual([2, expect.stringContaining('expected a duration')])
})
