/**
 * `npm run bench:gateway`: compares the gateway with the simplest Node proxy and with nginx, in front of one upstream.
 * Rounds are interleaved, and shares are taken within a round.
 *
 *   npm run bench:gateway              a minute and a half; writes docs/reference/gateway-bench.md
 *   npm run bench:gateway -- --quick   a first look
 */
import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { helpIfAsked } from '../harness/help.js'
import { Child } from '../measure/child.js'
import { startGateway, startNginx, startNode } from './proxies.js'

helpIfAsked(import.meta.url)

/** @typedef {{ rps: number, p99Ms: number, cpuUs: number }} Round */

const load = loadavg()[0] ?? 0
const isQuick = process.argv.includes('--quick')
const ROUNDS = isQuick ? 3 : 5
const SECONDS = isQuick ? 2 : 3
/** Nine seconds, because the compiler is still at work until then. */
const WARM_UP_ROUNDS = 3
const CONNECTIONS = 32
const GATEWAY = 'headgate serve'
/** The share of the bare proxy's throughput that the gateway should reach. */
const WANTED_SHARE = 0.8

/** @param {readonly number[]} values */
function median(values) {
  const sorted = [...values].sort((one, other) => one - other)
  return /** @type {number} */ (sorted[Math.floor(sorted.length / 2)])
}

const upstream = await startNode('upstream', './upstream-process.js')
const proxies = [
  await startNode('bare Node proxy', './bare-proxy-process.js', String(upstream.port)),
  await startGateway(upstream.port),
  await startNginx(upstream.port),
]
const generator = new Child('../http/load-process.js', [])
/** @type {Map<string, Round[]>} */
const rounds = new Map(proxies.map(({ name }) => [name, []]))
try {
  await generator.receive()
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    for (const { name, port, cpuUs } of proxies) {
      const before = cpuUs()
      const answered = /** @type {import('../http/load-process.js').Load} */ (
        await generator.request({ port, connections: CONNECTIONS, seconds: SECONDS })
      )
      if (answered.refused > 0)
        throw new Error(`${name}: ${answered.refused} requests were not answered with 200`)
      const { requests, seconds, p99Ms } = answered
      if (round >= 0)
        rounds.get(name)?.push({ rps: requests / seconds, p99Ms, cpuUs: (cpuUs() - before) / requests })
    }
  }
} finally {
  generator.stop()
  for (const { stop } of [...proxies, upstream]) stop()
}

const bare = /** @type {Round[]} */ (rounds.get('bare Node proxy'))
/** @param {readonly Round[]} all */
const shareOf = all => median(all.map(({ cpuUs }, round) => /** @type {Round} */ (bare[round]).cpuUs / cpuUs))
const rows = [...rounds].map(([name, all]) => {
  const share = shareOf(all)
  const figures = [
    median(all.map(({ rps }) => rps)).toFixed(0),
    median(all.map(({ p99Ms }) => p99Ms)).toFixed(1),
    median(all.map(({ cpuUs }) => cpuUs)).toFixed(0),
    share.toFixed(2),
  ]
  return `| ${name} | ${figures.join(' | ')} |`
})
const reached = shareOf(/** @type {Round[]} */ (rounds.get(GATEWAY)))
const page = `# The gateway, measured

Written by \`npm run bench:gateway\`. ${CONNECTIONS} connections, one request at a time on each, responses of 64 bytes, ${ROUNDS} rounds of
${SECONDS} s in turns after ${WARM_UP_ROUNDS} to warm up, ${cpus().length} cores shared with the load and the upstream (load average ${load.toFixed(1)} at the start), Node ${process.version}. Medians. The share is the
processor time of the bare proxy per request, divided by that of this one, within a round. \`headgate serve\` identifies every request by
its address, decides it in memory and adds the quota headers; nginx checks \`limit_req\`.

| | requests/s | p99, ms | processor, µs a request | share of the bare Node proxy |
|---|---|---|---|---|
${rows.join('\n')}

The target is a share of at least ${WANTED_SHARE} of the bare Node proxy: ${reached >= WANTED_SHARE ? 'met' : 'missed'} with ${reached.toFixed(2)}.
`
process.stdout.write(page)
if (!isQuick) writeFileSync(new URL('../../../docs/reference/gateway-bench.md', import.meta.url), page)
