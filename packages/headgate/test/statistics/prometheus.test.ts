import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import express from 'express'
import { createLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { rateLimit } from 'headgate/express'
import type { Family } from 'headgate/internal'
import { createStatistics, prometheus } from 'headgate/metrics'
import { redisStore } from 'headgate/redis'
import { Counter, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { systemProgram } from '../support/system-program.ts'

const policies = { api: slidingWindowLog({ limit: 3, window: '1m' }) }

/** Returns the samples of a text, by name and labels. */
function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

describe('the text for Prometheus', () => {
  it('the text for Prometheus has the names and reasons that were asked for, each request in one of them', async () => {
    const statistics = createStatistics()
    const limiter = createLimiter({ policies, statistics })
    for (let index = 0; index < 5; index++) await limiter.check('user:1', { policy: 'api' })
    const samples = samplesOf(prometheus({ statistics }).text())
    expect(samples.get('rate_limit_allowed_total')).toBe(3)
    expect(samples.get('rate_limit_blocked_total')).toBe(2)
    expect(samples.get('rate_limit_rejections_total{reason="local_exhausted"}')).toBe(2)
    expect(samples.get('rate_limit_rejections_total{reason="distributed_exhausted"}')).toBe(0)
    expect(samples.get('rate_limit_rejections_total{reason="backend_error"}')).toBe(0)
    expect(samples.get('rate_limit_tokens_remaining{scope="global"}')).toBe(0)
    expect(samples.get('rate_limit_backend_errors_total')).toBe(0)
    const labels = '{policy="api",tier="",rule="",source="memory",outcome="denied"}'
    expect(samples.get(`rate_limit_decisions_total${labels}`)).toBe(2)
    expect(samples.get('rate_limit_latency_seconds_count{source="memory"}')).toBeGreaterThan(0)
    await limiter.close()
  })

  it('a store that fails closed is a backend error, by its kind', async () => {
    const statistics = createStatistics()
    const down = {
      evalsha: () => Promise.reject(new Error('gone')),
      eval: () => Promise.reject(new Error('gone')),
    }
    const logger = { info() {}, warn() {}, error() {} }
    const store = redisStore(down, { statistics, logger, onStoreFailure: 'closed' })
    const limiter = createLimiter({ store, policies })
    for (let index = 0; index < 7; index++) await limiter.check('user:1', { policy: 'api' })
    const samples = samplesOf(prometheus({ statistics }).text())
    expect(samples.get('rate_limit_rejections_total{reason="backend_error"}')).toBe(7)
    expect(samples.get('rate_limit_backend_errors_total')).toBe(7)
    const kinds = ['connection', 'unavailable'].map(kind =>
      samples.get(`rate_limit_backend_errors_by_kind_total{kind="${kind}"}`),
    )
    expect((kinds[0] ?? 0) + (kinds[1] ?? 0)).toBe(7)
    expect(samples.get('rate_limit_breaker_open{node=""}')).toBe(1)
    expect(samples.get('rate_limit_fallback_total{outcome="denied"}')).toBe(7)
    await limiter.close()
  })

  it('the text for Prometheus has as many series with a hundred thousand clients as with one (S21)', async () => {
    const statistics = createStatistics()
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`p${index}`, policies.api]))
    const rules = Array.from({ length: 1_000 }, (_, index) => ({
      match: { path: `/r${index}` as const },
      policy: `p${index % 300}` as 'api',
    }))
    const ruled = createLimiter({
      config: defineConfig({ policies: { ...policies, ...many }, rules, default: { policy: 'api' } }),
      statistics,
    })
    const { text } = prometheus({ statistics })
    for (let index = 0; index < 2_000; index++) await ruled.request({ subject: 'user:0', path: `/r${index}` })
    const before = [...samplesOf(text()).keys()]
    for (let index = 0; index < 100_000; index++) {
      ruled.requestNow({ subject: `user:${index}`, path: `/r${index % 1_500}` })
    }
    expect([...samplesOf(text()).keys()]).toEqual(before)
    expect(before.length).toBeLessThan(500)
    expect(before.filter(name => name.startsWith('rate_limit_configured_limit{'))).toHaveLength(200)
    await ruled.close()
  })

  it('the text for Prometheus escapes labels, and is well-formed to promtool', async () => {
    const statistics = createStatistics()
    const ruled = createLimiter({ config: defineConfig({ policies }), statistics })
    await ruled.request({ subject: 'user:1', path: '/x' })
    const family: Family = {
      name: 'app_jobs',
      type: 'gauge',
      help: 'Jobs \\ of\nthe app.',
      labels: ['queue'],
      samples: [{ labels: { queue: 'say "hi" \\ {now}\nor' }, value: 1 }],
    }
    const text = prometheus({ statistics, more: () => [family] }).text()
    expect(text).toContain('app_jobs{queue="say \\"hi\\" \\\\ {now}\\nor"} 1')
    const promtool = await systemProgram('promtool')
    const complaint = await new Promise<string>(resolve => {
      const child = execFile(promtool, ['check', 'metrics'], (error, stdout, stderr) =>
        resolve(error === null ? '' : `${stdout}${stderr}`),
      )
      child.stdin?.end(text)
    })
    expect(complaint).toBe('')
    await ruled.close()
  })

  it('the text is OpenMetrics with exemplars where that is asked for', async () => {
    const statistics = createStatistics({ exemplar: () => ({ trace_id: 'abc123' }) })
    const limiter = createLimiter({ policies, statistics })
    await limiter.check('user:1', { policy: 'api' })
    const { contentType, body } = prometheus({ statistics }).answer(
      'application/openmetrics-text; version=1.0.0',
    )
    expect(contentType).toContain('application/openmetrics-text')
    expect(body).toMatch(
      /_bucket\{source="memory",le="[^"]+"\} \d+ # \{trace_id="abc123"\} [\d.e-]+ [\d.]+\n/,
    )
    expect(body).toContain('# TYPE rate_limit_allowed counter\nrate_limit_allowed_total 1\n')
    expect(body.endsWith('# EOF\n')).toBe(true)
    expect(prometheus({ statistics }).answer(undefined).contentType).toContain('version=0.0.4')
    await limiter.close()
  })
})

it('metrics are added to the app’s own prom-client registry, and cannot be added twice', async () => {
  const registry = new Registry()
  new Counter({ name: 'app_orders_total', help: 'Orders.', registers: [registry] }).inc(4)
  const statistics = createStatistics()
  const limiter = createLimiter({ policies, statistics })
  const exposed = prometheus({ statistics })
  exposed.registerOn(registry)
  await limiter.check('user:1', { policy: 'api' })
  const samples = samplesOf(await registry.metrics())
  expect(samples.get('app_orders_total')).toBe(4)
  expect(samples.get('rate_limit_allowed_total')).toBe(1)
  expect(
    samples.get('rate_limit_latency_seconds_bucket{le="+Inf",source="memory"}') ??
      samples.get('rate_limit_latency_seconds_bucket{source="memory",le="+Inf"}'),
  ).toBeGreaterThan(0)
  expect(() => exposed.registerOn(registry)).toThrow(
    'registry: expected one without rate_limit_allowed_total',
  )
  await limiter.close()
})

it('a request that passes two nested adapters of one limiter is counted once', async () => {
  const statistics = createStatistics()
  const limiter = createLimiter({ policies, statistics })
  const app = express()
  app.use(rateLimit({ limiter, policy: 'api' }))
  app.get('/', rateLimit({ limiter, policy: 'api' }), (_req, res) => void res.send('ok'))
  const server = app.listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
  server.close()
  const samples = samplesOf(prometheus({ statistics }).text())
  expect(samples.get('rate_limit_allowed_total')).toBe(1)
  await limiter.close()
})

it('wrong options are rejected by name', () => {
  expect(() => prometheus({} as never)).toThrow('statistics: expected what createStatistics() returns')
  expect(() => prometheus({ statistics: {} as never })).toThrow('statistics: expected')
})

it('the reference lists every metric with its type, labels and meaning, and no other', async () => {
  const statistics = createStatistics()
  const ruled = createLimiter({ config: defineConfig({ policies }), statistics })
  await ruled.request({ subject: 'user:1' })
  const page = readFileSync(new URL('../../../../docs/reference/metrics.md', import.meta.url), 'utf8')
  const { families } = prometheus({ statistics })
  const rows = families().map(
    ({ name, type, labels, help }) =>
      `| \`${name}\` | ${type} | ${labels.map(label => `\`${label}\``).join(', ')} | ${help} |`,
  )
  const library = page.slice(0, page.indexOf('## Of `headgate serve`'))
  expect(library.split('\n').filter(line => line.startsWith('| `rate_limit_'))).toEqual(rows)
  await ruled.close()
})
