/** How upstreams answer, in the metrics of a server in front of them. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { mergeProcesses, processFamilies } from '../src/metrics/process-counts.js'
import { UpstreamCounts, upstreamFamilies } from '../src/metrics/upstream-counts.js'
import { serveHeadgate } from './support/headgate-process.js'

import { lines, rawRequest } from './support/raw-http.js'

it('answers are counted by upstream and class, and failures beside them, whatever host the client asks for', async () => {
  const upstream = createServer((req, res) => {
    const status = Number(req.url?.slice(1))
    if (status === 0) req.socket.destroy()
    else res.writeHead(status).end()
  })
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const authority = `127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const headgate = await serveHeadgate('--demo', '--upstream', `http://${authority}`)
  try {
    for (const [method, status, expected] of [
      ...['200', '204', '304', '404', '503'].map(code => ['GET', code, Number(code)] as const),
      ['POST', '0', 502] as const,
    ]) {
      const asked = lines(
        `${method} /${status} HTTP/1.1`,
        `Host: made-up-${status}.example`,
        'Connection: close',
      )
      expect((await rawRequest(headgate.gatewayUrl, asked)).status).toBe(expected)
    }
    const text = await (await fetch(`${headgate.adminUrl}/metrics`)).text()
    const ofUpstream = text.split('\n').filter(line => line.startsWith('rate_limit_upstream_requests_total{'))
    expect(ofUpstream.sort()).toEqual(
      [
        ['2xx', 2],
        ['3xx', 1],
        ['4xx', 1],
        ['5xx', 1],
        ['failed', 1],
      ].map(
        ([status, count]) =>
          `rate_limit_upstream_requests_total{upstream="${authority}",status="${status}"} ${count}`,
      ),
    )
    expect(text).toContain(`rate_limit_upstream_latency_seconds_count{upstream="${authority}"} 6\n`)
    expect(text).not.toContain('made-up')
    expect(text).toMatch(/^process_cpu_seconds_total \d+(\.\d+)?$/m)
    expect(text).toMatch(/^process_resident_memory_bytes \d{7,}$/m)
    expect(text).toMatch(/^rate_limit_event_loop_lag_seconds_count [1-9]/m)
  } finally {
    headgate.child.kill('SIGKILL')
    upstream.closeAllConnections()
    upstream.close()
  }
})

it('the rest of the upstreams beyond twenty is counted together', () => {
  const counts = new UpstreamCounts()
  for (let index = 0; index < 100; index++) {
    counts.add({ upstream: `10.0.0.${index}:80`, status: 200, seconds: 60 })
  }
  const [requests, latency] = upstreamFamilies(counts.read())
  expect(requests?.samples).toHaveLength(21)
  expect(requests?.samples.at(-1)).toEqual({ labels: { upstream: 'other', status: '2xx' }, value: 80 })
  expect(latency?.samples.at(-1)?.value).toMatchObject({ sumSeconds: 4_800 })
})

it('the reference lists the metrics of a server with type, labels and meaning', () => {
  const page = readFileSync(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8')
  for (const { name, type, labels, help } of [
    ...upstreamFamilies([]),
    ...processFamilies(mergeProcesses([])),
  ]) {
    expect(page).toContain(
      `| \`${name}\` | ${type} | ${labels.map(label => `\`${label}\``).join(', ')} | ${help} |`,
    )
  }
})
