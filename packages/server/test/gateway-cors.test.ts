/** Tests what pages of other origins get to read, asked by a real browser. */
import { execFile } from 'node:child_process'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterEach, expect, it } from 'vitest'
import { systemProgram } from '../../headgate/test/support/system-program.js'
import { startGateway } from './support/test-gateway.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A gateway that admits two requests a minute, before an upstream that answers its own pages. */
async function gatewayFor(cors: { readonly origins: readonly string[]; readonly credentials?: boolean }) {
  const asked: string[] = []
  const upstream = await serving((req, res) => {
    asked.push(req.method ?? '')
    res.setHeader('Access-Control-Allow-Origin', req.headers.origin ?? 'null')
    res.end('from the upstream')
  })
  const config = defineConfig({
    policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) },
    default: { policy: 'api' },
    identify: ['ip'],
    headers: 'both',
    cors,
  })
  const gateway = await startGateway(upstream, { config })
  closers.push(gateway.close)
  return { url: gateway.url, asked }
}

/** A page that asks three times with a header of its own, and shows what it could read. */
const page = (target: string) => `<!doctype html><title>page</title><pre id="out"></pre><script type="module">
const seen = []
for (let n = 0; n < 3; n++) {
  try {
    const res = await fetch(${JSON.stringify(target)}, { method: 'PUT', headers: { 'x-own': '1' } })
    seen.push({ status: res.status, retryAfter: res.headers.get('retry-after'), left: res.headers.get('ratelimit') })
  } catch (error) { seen.push({ failed: error.name }) }
}
document.querySelector('#out').textContent = JSON.stringify(seen)
document.title = 'done'
</script>`

async function seenBy(target: string, origin: string): Promise<unknown> {
  const chromium = await systemProgram('chromium')
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--virtual-time-budget=10000', '--dump-dom']
  const { stdout } = await promisify(execFile)(chromium, [
    ...args,
    `${origin}/?to=${encodeURIComponent(target)}`,
  ])
  const shown = /<pre id="out">([^<]*)<\/pre>/.exec(stdout)?.[1] ?? ''
  return JSON.parse(shown)
}

const startPages = () =>
  serving((req, res) => {
    res.setHeader('Content-Type', 'text/html')
    res.end(page(new URL(req.url ?? '', 'http://x').searchParams.get('to') ?? ''))
  })

it('a page of a listed origin reads its 429, and its preflights cost nothing', async () => {
  const origin = await startPages()
  const { url, asked } = await gatewayFor({ origins: [origin] })
  const [first, second, third] = (await seenBy(url, origin)) as Record<string, unknown>[]
  expect([first, second]).toMatchObject([{ status: 200 }, { status: 200 }])
  expect(third).toMatchObject({ status: 429, retryAfter: expect.stringMatching(/^\d+$/) })
  expect(third?.left).toContain('r=0')
  // The upstream saw no preflight, and the limit neither.
  expect(asked).toEqual(['PUT', 'PUT'])
})

it('a page of another origin is not admitted by the gateway: its preflight is a request like any other', async () => {
  const origin = await startPages()
  const { url, asked } = await gatewayFor({ origins: ['https://app.example.com'] })
  const seen = (await seenBy(url, origin)) as Record<string, unknown>[]
  expect(seen).toEqual([{ failed: 'TypeError' }, { failed: 'TypeError' }, { failed: 'TypeError' }])
  expect(asked).not.toContain('PUT')
})

it('rejections of every kind are readable, vary by origin, and repeat nothing but a listed origin', async () => {
  const { url } = await gatewayFor({ origins: ['https://app.example.com'], credentials: true })
  const ask = (origin: string) => fetch(url, { headers: { origin } })
  await ask('https://app.example.com')
  await ask('https://app.example.com')
  const listed = await ask('https://app.example.com')
  expect(listed.status).toBe(429)
  expect(listed.headers.get('access-control-allow-origin')).toBe('https://app.example.com')
  expect(listed.headers.get('access-control-allow-credentials')).toBe('true')
  expect(listed.headers.get('access-control-expose-headers')).toContain('Retry-After')
  expect(listed.headers.get('vary')).toBe('Origin')
  const other = await ask('https://evil.example.com')
  expect(other.status).toBe(429)
  expect(other.headers.get('access-control-allow-origin')).toBeNull()
  expect(other.headers.get('vary')).toBe('Origin')
})

it('with any origin admitted, a 502 is readable by everybody', async () => {
  const config = defineConfig({ cors: { origins: ['*'] }, upstream: 'http://127.0.0.1:1' })
  const gateway = await startGateway(null, { config })
  closers.push(gateway.close)
  const answer = await fetch(gateway.url, { headers: { origin: 'https://anybody.example' } })
  expect(answer.status).toBe(502)
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
})
