import { request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { type HeadgateProcess, serveHeadgate } from './support/headgate-process.js'
import { startRawUpstream } from './support/raw-upstream.js'

const QUICKSTART = fileURLToPath(new URL('../../../examples/quickstart/headgate.yaml', import.meta.url))

let running: HeadgateProcess | undefined
afterEach(() => {
  running?.child.kill('SIGKILL')
  running = undefined
})

async function serve(...args: string[]): Promise<HeadgateProcess> {
  running = await serveHeadgate(...args)
  return running
}

describe('headgate serve with the quickstart', () => {
  it('what it says to try is true under a limit of requests in flight, too', async () => {
    const config = fileURLToPath(new URL('../../../examples/llm-proxy/headgate.yaml', import.meta.url))
    const { stdout } = await serve('--config', config)
    expect(stdout()).toContain('60 a minute; 5 at once')
    expect(stdout()).toContain('Try it: 60 times 200, then 429')
  })

  it('the quickstart lets 10 requests pass, denies the 11th and says why', async () => {
    const { gatewayUrl, adminUrl, stdout, end } = await serve('--config', QUICKSTART, '--demo')
    expect(stdout()).toContain('policy demo, 10 a minute')
    expect(stdout()).toContain('Try it: 10 times 200, then 429')
    expect(stdout()).not.toContain('WARN_HEADGATE')

    const statuses: number[] = []
    for (let index = 0; index < 10; index++) statuses.push((await fetch(`${gatewayUrl}/hello`)).status)
    expect(statuses).toEqual(new Array(10).fill(200))

    const denied = await fetch(`${gatewayUrl}/hello`)
    expect(denied.status).toBe(429)
    expect(denied.headers.get('content-type')).toBe('application/problem+json')
    expect(denied.headers.get('x-ratelimit-limit')).toBe('10')
    expect(denied.headers.has('x-ratelimit-burst')).toBe(false)
    expect(denied.headers.get('x-ratelimit-remaining')).toBe('0')
    expect(denied.headers.get('x-ratelimit-policy')).toBe('demo')
    expect(denied.headers.has('ratelimit')).toBe(false)
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
    const page = await fetch(`${gatewayUrl}/hello`, { headers: { Accept: 'text/html,*/*;q=0.8' } })
    expect([page.status, page.headers.get('content-type')]).toEqual([429, 'text/html; charset=utf-8'])
    expect(await denied.json()).toMatchObject({ status: 429, policy: 'demo', limit: 10, remaining: 0 })
    expect(stdout()).toMatch(/^429 for ip:127\.0\.0\.1: policy demo allows 10 a minute; next in \d+ s$/m)

    const checked = await fetch(`${adminUrl}/v1/check`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{ "subject": "user:42", "policy": "search", "cost": 5 }',
    })
    expect(await checked.json()).toMatchObject({ allowed: true, policy: 'search', remaining: 0 })
    expect((await end('SIGTERM')).code).toBe(0)
  })

  it('the built-in upstream answers with what it saw', async () => {
    const { gatewayUrl } = await serve('--config', QUICKSTART, '--demo')
    const answer = await fetch(`${gatewayUrl}/a?b=c`, { method: 'POST', body: 'hello' })
    expect(answer.headers.get('x-ratelimit-remaining')).toBe('9')
    expect(await answer.json()).toMatchObject({
      method: 'POST',
      path: '/a?b=c',
      bodyBytes: 5,
      headers: { 'x-forwarded-for': '127.0.0.1' },
    })
  })
})

describe('Ctrl-C and SIGTERM', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'a server ends with 0 on %s, idle connections or not',
    async signal => {
      const { gatewayUrl, end } = await serve('--demo', '--config', QUICKSTART)
      // One connection that is kept after its answer, and one that never sends anything.
      await fetch(gatewayUrl)
      const silent = connect(Number(new URL(gatewayUrl).port), '127.0.0.1')
      silent.on('error', () => {})
      await sleep(50)
      const began = performance.now()
      const { code, stdout, stderr } = await end(signal)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(/finishing what is in flight\nstopped\n$/)
      // Far below the drain timeout.
      expect(performance.now() - began).toBeLessThan(10_000)
    },
  )

  it('requests in flight are finished when a server stops, later ones are not accepted, and health says so', async () => {
    const upstream = await startRawUpstream()
    upstream.fallSilent()
    const { gatewayUrl, adminUrl, end } = await serve('--config', QUICKSTART, '--upstream', upstream.url)
    const client = request(gatewayUrl, { method: 'POST', agent: false })
    const answered = new Promise<number | undefined>((resolve, reject) => {
      client.on('response', answer => resolve(answer.resume().statusCode))
      client.on('error', reject)
    })
    client.end('hello')
    await expect.poll(() => upstream.received[0] ?? '').toContain('hello')

    const ended = end('SIGINT')
    await sleep(400)
    await expect(fetch(gatewayUrl)).rejects.toThrow()
    expect((await fetch(`${adminUrl}/healthz`)).status).toBe(503)
    for (const socket of upstream.sockets) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    expect(await answered).toBe(200)
    expect((await ended).code).toBe(0)
    await upstream.close()
  })

  it('a request that never ends is cut after the drain timeout, which is logged', async () => {
    const upstream = await startRawUpstream()
    upstream.fallSilent()
    const args = ['--config', QUICKSTART, '--upstream', upstream.url, '--drain-timeout', '1s']
    const { gatewayUrl, end } = await serve(...args)
    const asked = fetch(gatewayUrl).catch((error: Error) => error.name)
    await expect.poll(() => upstream.received.length).toBe(1)
    const began = performance.now()
    const { code, stdout } = await end('SIGTERM')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^1 connection.* cut, 1 s after/m)
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(await asked).toBe('TypeError')
    await upstream.close()
  })
})
