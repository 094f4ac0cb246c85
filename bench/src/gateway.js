/** What `headgate serve` costs a request, beside the simplest Node proxy and nginx, and how it starts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { measureEnvoy } from './envoy.js'
import { startGateway, startListener } from './harness/gateway.js'
import { formatTable, thousands } from './harness/page.js'
import { Child, cpuMicrosOf, residentBytesOf, startProgram } from './harness/processes.js'
import { freePort, startRedis } from './harness/redis-server.js'
import { interleave } from './harness/rounds.js'
import { medianOf, ratioOf } from './harness/stats.js'

/** @typedef {{ pid: number, port: number, readyMs: number, stop: () => Promise<void> }} Proxy */

const CONNECTIONS = 32
const FULL = { rounds: 7, seconds: 2, warmUpSeconds: 8, starts: 7, idleMs: 60_000, envoySeconds: 5 }
const QUICK = { rounds: 1, seconds: 0.2, warmUpSeconds: 0.2, starts: 1, idleMs: 100, envoySeconds: 0.2 }
const BARE = 'bare Node proxy'
const POLICY = `policies:
  api: { algorithm: sliding-window-counter, limit: 4000000000, window: 1m }
default: { policy: api }
`

export const minutes = 4
export const rows = [BARE, 'headgate, memory', 'headgate, Redis', 'nginx, limit_req']

/** @param {import('./bench.js').BenchOptions} options @returns {Promise<import('./bench.js').Sections>} */
export async function measure({ quick, only = rows, machine }) {
  const { rounds, seconds, warmUpSeconds, starts, idleMs, envoySeconds } = quick ? QUICK : FULL
  const redis = await startRedis()
  const upstream = await startListener(new URL('harness/upstream-process.js', import.meta.url))
  const generator = new Child(new URL('harness/load-process.js', import.meta.url))
  const flags = ['--upstream', `http://127.0.0.1:${upstream.port}`]
  const away = `redis://127.0.0.1:${await freePort()}`
  /** @type {Readonly<Record<string, () => Promise<Proxy>>>} */
  const start = {
    [BARE]: () => startListener(new URL('bare-proxy-process.js', import.meta.url), String(upstream.port)),
    'headgate, memory': () => startGateway(POLICY, flags),
    'headgate, Redis': () => startGateway(POLICY, [...flags, '--redis', redis.url]),
    'headgate, Redis away': () => startGateway(POLICY, [...flags, '--redis', away]),
    'nginx, limit_req': () => startNginx(upstream.port),
  }
  /** @type {Map<string, Proxy>} */
  const proxies = new Map()
  try {
    await generator.receive()
    const starters = new Map(Object.entries(start).map(([name, open]) => [name, () => timeStart(open)]))
    const startMs = await machine.cell('starts', () => interleave(starters, starts))
    const idleBytes = new Map()
    const contestants = new Map()
    for (const name of rows.filter(row => only.includes(row) || row === BARE)) {
      proxies.set(name, await /** @type {() => Promise<Proxy>} */ (start[name])())
    }
    // V8 keeps what starting took for most of a minute.
    await sleep(idleMs)
    for (const [name, { pid, port }] of proxies) {
      idleBytes.set(name, residentBytesOf(pid))
      await generator.request({ port, connections: CONNECTIONS, seconds: warmUpSeconds })
      contestants.set(name, async () => {
        const before = cpuMicrosOf(pid)
        const load = await generator.request({ port, connections: CONNECTIONS, seconds })
        return { ...load, cpuMicros: (cpuMicrosOf(pid) - before) / load.requests }
      })
    }
    /** @type {Map<string, (import('./harness/load-process.js').Load & { cpuMicros: number })[]>} */
    const loads = await machine.cell('proxies', () => interleave(contestants, rounds))
    const bare = loads.get(BARE)?.map(({ cpuMicros }) => cpuMicros) ?? []
    const startOf = (/** @type {string} */ name) => medianOf(startMs.get(name) ?? []).toFixed(0)
    const table = formatTable({
      head: ['proxy', 'µs a request', '× the bare proxy', 'requests/s', 'p99, ms', 'idle, MB', 'start, ms'],
      rows: [...loads].map(([name, own]) => {
        const { median, low, high } = ratioOf(
          own.map(({ cpuMicros }) => cpuMicros),
          bare,
        )
        return [
          name,
          medianOf(own.map(({ cpuMicros }) => cpuMicros)).toFixed(0),
          `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`,
          thousands(medianOf(own.map(({ perSecond }) => perSecond))),
          medianOf(own.map(({ p99Ms }) => p99Ms)).toFixed(1),
          ((idleBytes.get(name) ?? Number.NaN) / 1e6).toFixed(0),
          startOf(name),
        ]
      }),
    })
    const { healthyMs, frozenMs } = await machine.cell('Envoy', () => measureEnvoy(envoySeconds))
    return {
      gateway: `${table}

With Redis away at its start, \`headgate serve\` is ready after ${startOf('headgate, Redis away')} ms. Envoy, asking for four descriptors
2,000 times a second, gets 99 % of its answers within ${healthyMs.toFixed(1)} ms, with Redis frozen within ${frozenMs.toFixed(1)} ms.`,
    }
  } finally {
    generator.stop()
    for (const proxy of [...proxies.values(), upstream]) await proxy.stop()
    await redis.stop()
  }
}

/** @param {() => Promise<Proxy>} open */
async function timeStart(open) {
  const { readyMs, stop } = await open()
  await stop()
  return readyMs
}

/** Starts nginx in one process, like the other proxies. @param {number} upstreamPort @returns {Promise<Proxy>} */
async function startNginx(upstreamPort) {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'headgate-nginx-'))
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/${name};`,
  )
  const config = join(folder, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr notice;
events { worker_connections 1024; }
http { access_log off; ${paths.join(' ')}
  upstream app { server 127.0.0.1:${upstreamPort}; keepalive 128; }
  limit_req_zone $binary_remote_addr zone=all:10m rate=1000000r/s;
  server { listen 127.0.0.1:${port}; keepalive_requests 1000000000; limit_req zone=all burst=1000000 nodelay;
    location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; } } }
`,
  )
  const finder = new URL('../../scripts/system-programs.mjs', import.meta.url).href
  const { ensureProgram } = await import(finder)
  const nginx = await ensureProgram('nginx')
  const program = await startProgram(nginx, ['-c', config, '-e', 'stderr'], {
    ready: /\[notice\].*OS: Linux/,
  })
  return {
    ...program,
    port,
    stop: () => program.stop().finally(() => rmSync(folder, { recursive: true, force: true })),
  }
}
