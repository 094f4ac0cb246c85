/** Rules whose charge comes back by the status of the answer. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startGateway, type TestGateway } from './support/test-gateway.js'

const config = defineConfig({
  policies: {
    login: slidingWindowLog({ limit: 2, window: '1m' }),
    assets: slidingWindowLog({ limit: 5, window: '1m' }),
  },
  default: { policy: 'login' },
  rules: [
    {
      name: 'login',
      match: { method: 'POST', path: '/login/*' },
      policy: 'login',
      refundIf: { status: ['2xx', 303], atMost: '100/1m' },
    },
    { name: 'files', match: { path: '/Files/*' }, policy: 'login', scope: 'files', refundIf: [304] },
    { name: 'assets', match: { path: '/assets/*' }, policy: 'assets', refundIf: 304 },
    {
      name: 'pages',
      match: { path: '/pages/*' },
      policy: 'assets',
      scope: 'pages',
      refundIf: { status: 304, atMost: '20/1m' },
    },
  ],
})

describe('refundIf of a rule', () => {
  const limiter = createLimiter({ config })
  let upstream: Server
  let gateway: TestGateway

  beforeAll(async () => {
    upstream = createServer((req, res) => {
      res.writeHead(Number(req.url?.split('/').at(-1))).end()
    })
    await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
    const { port } = upstream.address() as AddressInfo
    gateway = await startGateway(`http://127.0.0.1:${port}`, { config, limiter })
  })
  afterAll(async () => {
    await gateway.close()
    upstream.closeAllConnections()
    upstream.close()
  })

  const ask = (path: string, method = 'POST') =>
    fetch(`${gateway.url}${path}`, { method, redirect: 'manual' })
  const leftOf = async (scope: string) => {
    const { remaining } = await limiter.peek('ip:127.0.0.1', { policy: 'login', scope })
    return remaining
  }

  it('the gateway refunds a successful login, and keeps the charge of a failed one', async () => {
    for (let time = 0; time < 3; time++) {
      for (const status of [200, 204, 303]) {
        expect((await ask(`/login/${status}`)).status).toBe(status)
        await expect.poll(() => leftOf('global')).toBe(2)
      }
    }
    for (const status of [401, 500]) expect((await ask(`/login/${status}`)).status).toBe(status)
    expect((await ask('/login/200')).status).toBe(429)
  })

  it('the gateway refunds only what every reading of the path would: another spelling is not better off', async () => {
    expect((await ask('/Files/304', 'GET')).status).toBe(304)
    await expect.poll(() => leftOf('files')).toBe(2)
    const facts = { subject: 'ip:192.0.2.9', method: 'GET', path: '/files/304' } as const
    const decision = await limiter.request(facts)
    expect([decision.isRefundable, decision.refundsOn(304)]).toEqual([false, false])
  })

  it.each([
    ['the limit itself, once more', '/assets/304', 10],
    ['atMost', '/pages/304', 25],
  ])('a client that chooses its status gets no more back than %s', async (_name, path, most) => {
    let passed = 0
    for (let time = 0; time < 100; time++) {
      const { status } = await fetch(`${gateway.url}${path}`, { headers: { 'If-None-Match': '*' } })
      if (status === 304) passed++
    }
    // A refund may come after the next request, which is then denied all the same.
    expect(passed).toBeGreaterThan(most / 2)
    expect(passed).toBeLessThanOrEqual(most)
  })

  it('explain says which answers give back their charge', () => {
    const { levels, text } = limiter.explain({ subject: 'ip:192.0.2.9', method: 'POST', path: '/login/1' })
    expect(levels[0]?.refundIf).toEqual(['2xx', '303'])
    expect(levels[0]?.refundAtMost).toEqual(['100/1m'])
    expect(text).toContain('  given back by a response with 2xx, 303, at most 100/1m')
    const assets = limiter.explain({ subject: 'ip:192.0.2.9', method: 'GET', path: '/assets/1' })
    expect(assets.text).toContain('given back by a response with 304, at most as much as the limits admit')
  })
})
