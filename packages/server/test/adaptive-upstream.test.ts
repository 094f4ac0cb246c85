/** A request for which its upstream has no permit. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { concurrency, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { describe, expect, it, vi } from 'vitest'
import { serveHeadgate } from './support/headgate-process.js'
import { startQueueingServer } from './support/queueing-server.js'
import { startGateway } from './support/test-gateway.js'

/** Returns the statuses of those that are answered first. */
async function firstOf(answers: readonly Promise<Response>[], count: number): Promise<number[]> {
  const statuses: number[] = []
  return new Promise((resolve, reject) => {
    for (const answer of answers) {
      answer.then(({ status }) => {
        if (statuses.push(status) === count) resolve(statuses)
      }, reject)
    }
  })
}

describe('a request for which the upstream has no permit', () => {
  it('a request the upstream has no permit for is 503 with Retry-After and a reason, and costs its caller nothing', async () => {
    const upstream = await startQueueingServer(0, 1)
    const config = defineConfig({
      policies: { api: [slidingWindowLog({ limit: 10, window: '1m' }), concurrency({ limit: 10 })] },
      default: { policy: 'api' },
      upstream: { urls: [upstream.url], concurrency: { floor: 1, ceiling: 1 } },
    })
    const gateway = await startGateway(null, { config })
    try {
      const answers = Array.from({ length: 10 }, () => fetch(gateway.url))
      const one = await Promise.race(answers)
      // Nine of them are rejected, whichever came first.
      await firstOf(answers, 9)
      expect(one.status).toBe(503)
      expect(one.headers.get('retry-after')).toBe('1')
      expect(one.headers.get('content-type')).toBe('application/problem+json')
      expect(await one.json()).toMatchObject({ status: 503, reason: 'upstream-capacity' })
      upstream.setWorkers(1)
      const statuses = (await Promise.all(answers)).map(({ status }) => status)
      expect(statuses.filter(status => status === 200)).toHaveLength(1)
      const answered = await fetch(gateway.url)
      expect(answered.headers.get('x-ratelimit-remaining')).toBe('8')
    } finally {
      await gateway.close()
      upstream.close()
    }
  })

  it('slow bodies keep nobody out: a permit is taken only when the body is complete', async () => {
    let arrived = 0
    const upstream = createServer((req, res) => {
      arrived++
      req.resume().on('end', () => res.end('done'))
    }).listen(0, '127.0.0.1')
    await once(upstream, 'listening')
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
    const config = defineConfig({
      policies: { api: slidingWindowLog({ limit: 100, window: '1m' }) },
      default: { policy: 'api' },
      upstream: { urls: [url], concurrency: { floor: 2, ceiling: 2 } },
    })
    const gateway = await startGateway(null, { config })
    const slow = Array.from({ length: 2 }, () =>
      request(gateway.url, { method: 'POST', headers: { 'Content-Length': '100' } }).on('error', () => {}),
    )
    try {
      for (const one of slow) one.write('x')
      await vi.waitFor(() => expect(arrived).toBe(2), 20_000)
      const { status } = await fetch(gateway.url)
      const posted = await fetch(gateway.url, { method: 'POST', body: 'whole' })
      expect([status, posted.status]).toEqual([200, 200])
    } finally {
      for (const one of slow) one.destroy()
      await gateway.close()
      upstream.closeAllConnections()
      upstream.close()
    }
  })

  it('such a rejection is counted by its reason, beside what the upstream can take', async () => {
    const upstream = await startQueueingServer(0, 1)
    const authority = new URL(upstream.url).host
    const folder = mkdtempSync(join(tmpdir(), 'headgate-'))
    const file = join(folder, 'headgate.json')
    const concurrency = { floor: 1, ceiling: 1 }
    const tiers = { free: { minute: 100, priority: 'low' } }
    writeFileSync(
      file,
      JSON.stringify({ tiers, default: { tier: 'free' }, upstream: { urls: [upstream.url], concurrency } }),
    )
    const headgate = await serveHeadgate('--config', file)
    try {
      const served = fetch(headgate.gatewayUrl)
      const rejected = Array.from({ length: 4 }, () => fetch(headgate.gatewayUrl))
      // Whichever comes first gets the permit.
      const statuses = await firstOf([served, ...rejected], 4)
      expect(statuses).toEqual([503, 503, 503, 503])
      upstream.setWorkers(1)
      await Promise.all([served, ...rejected])
      const text = await (await fetch(`${headgate.adminUrl}/metrics`)).text()
      expect(text).toContain(
        `rate_limit_upstream_rejected_total{upstream="${authority}",reason="upstream-capacity"} 4\n`,
      )
      expect(text).toContain(`rate_limit_upstream_shed_total{upstream="${authority}",priority="low"} 4\n`)
      expect(text).toContain(`rate_limit_upstream_capacity{upstream="${authority}"} 1\n`)
      expect(text).toContain(`rate_limit_upstream_waiting{upstream="${authority}"} 0\n`)
    } finally {
      headgate.child.kill('SIGKILL')
      upstream.close()
      rmSync(folder, { recursive: true })
    }
  })
})

it('clients that give up at an upstream that answers nobody lower what it gets; when it is back, so are they', async () => {
  const upstream = await startQueueingServer(100, 20)
  const config = defineConfig({
    policies: { api: slidingWindowLog({ limit: 1_000_000, window: '1m' }) },
    default: { policy: 'api' },
    upstream: { urls: [upstream.url], concurrency: { floor: 2, ceiling: 64 } },
  })
  const gateway = await startGateway(null, { config })
  /** Sends so many at once, waits for each of them for a while, and returns how many were answered. */
  const wave = async (count: number, patienceMs: number) => {
    const ask = async () => {
      try {
        const { status } = await fetch(gateway.url, { signal: AbortSignal.timeout(patienceMs) })
        return status === 200 ? 1 : 0
      } catch {
        return 0
      }
    }
    const answered: number[] = await Promise.all(Array.from({ length: count }, ask))
    return answered.reduce((sum, one) => sum + one, 0)
  }
  try {
    await vi.waitFor(async () => expect(await wave(40, 10_000)).toBeGreaterThan(15), { timeout: 25_000 })
    upstream.setWorkers(0)
    for (let round = 0; round < 4; round++) await wave(40, 400)
    const before = upstream.arrived()
    for (let round = 0; round < 5; round++) await wave(40, 400)
    // Two at a time may ask, and no more: it stayed at twenty before.
    expect(upstream.arrived() - before).toBeLessThanOrEqual(20)
    upstream.setWorkers(100)
    await vi.waitFor(async () => expect(await wave(40, 10_000)).toBeGreaterThan(10), { timeout: 25_000 })
  } finally {
    await gateway.close()
    upstream.close()
  }
}, 60_000)
