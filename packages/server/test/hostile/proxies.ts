/** Clients of a proxy that asks Headgate, as the guide constats it, before it forwards. */
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import {
  type ProxyProcess,
  snippet,
  startCaddy,
  startNginx,
} from '../../../headgate/test/support/proxy-process.js'
import { lines } from '../support/raw-http.js'
import type { Attack, AttackGroup } from './attack.js'
import { underAttack } from './target.js'

const LIMIT = 20
const CONNECTIONS = 3_000
const REQUESTS_EACH = 2
/** Long enough for a proxy that has as many connections to open as it has clients, on a busy machine. */
const PATIENCE_MS = 60_000
/** As in the guide's `limit_req`, for one address. */
const FALLBACK = { perSecond: 10, burst: 20 }
const config = `policies:
  api: { algorithm: sliding-window-log, limit: ${LIMIT}, window: 1h }
default: { policy: api }
`

/** Opens all connections at once, sends one request after another on each, and counts the statuses; 0: no answer. */
async function crowd(url: string): Promise<Map<number, number>> {
  const counts = new Map<number, number>()
  const count = (status: number) => counts.set(status, (counts.get(status) ?? 0) + 1)
  const clients = Array.from(
    { length: CONNECTIONS },
    () => new Promise<void>(done => client(url, count, done)),
  )
  await Promise.all(clients)
  return counts
}

function client(url: string, count: (status: number) => void, done: () => void): void {
  const { host, hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const request = lines('GET / HTTP/1.1', `Host: ${host}`)
  let answers = 0
  socket.write(request)
  socket.setTimeout(PATIENCE_MS, () => socket.destroy())
  socket.on('data', chunk => {
    // Every answer is short enough to come at once.
    const status = /^HTTP\/1\.1 (\d{3})/.exec(chunk.toString('latin1'))?.[1]
    if (status === undefined) return
    count(Number(status))
    if (++answers === REQUESTS_EACH) socket.destroy()
    else socket.write(request)
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    if (answers < REQUESTS_EACH) count(0)
    done()
  })
}

/**
 * Puts a proxy between a crowd and a service, and compares what reaches the service with what may, which depends on
 * how long the crowd was there.
 */
function throughProxy(
  start: (ports: { readonly 8082: number; readonly 3000: number }) => Promise<ProxyProcess>,
  mayPass: (tookSeconds: number) => number,
): Promise<string> {
  return underAttack({ config }, async ({ adminUrl }) => {
    let reached = 0
    const service = createServer((_req, res) => {
      reached++
      res.end('ok')
    })
    await new Promise<void>(resolve =>
      service.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, resolve),
    )
    const ports = { 8082: Number(new URL(adminUrl).port), 3000: (service.address() as AddressInfo).port }
    const proxy = await start(ports)
    try {
      const began = performance.now()
      const counts = await crowd(proxy.url)
      const tookSeconds = (performance.now() - began) / 1_000
      const seen = [...counts]
        .map(([status, count]) => `${count} × ${status}`)
        .sort()
        .join(', ')
      const most = Math.ceil(mayPass(tookSeconds))
      if (reached > most) throw new Error(`${reached} reached the service, ${most} may: ${seen}`)
      if (!counts.has(429)) throw new Error(`nobody was told to wait: ${seen}`)
      return `${reached} reached the service, ${most} may; ${seen} in ${tookSeconds.toFixed(1)} s`
    } finally {
      await proxy.stop()
      service.closeAllConnections()
      service.close()
    }
  })
}

const crowdAtNginx: Attack = {
  name: 'a crowd at nginx',
  does: `opens ${CONNECTIONS.toLocaleString('en')} connections to the guide's nginx at once and sends ${REQUESTS_EACH} requests on each`,
  expected: 'no more reach the service than the limit and the rate of the fallback let through',
  inShort: true,
  run: () =>
    throughProxy(
      ports => startNginx(snippet('forward-auth.md', 'nginx', ports)),
      tookSeconds => LIMIT + 1 + FALLBACK.burst + FALLBACK.perSecond * tookSeconds,
    ),
}

const crowdAtCaddy: Attack = {
  name: 'a crowd at Caddy',
  does: `opens ${CONNECTIONS.toLocaleString('en')} connections to the guide's Caddy at once and sends ${REQUESTS_EACH} requests on each`,
  expected: 'no more reach the service than the limit; what cannot be decided is rejected with 502',
  inShort: false,
  run: () =>
    throughProxy(
      ports => startCaddy(snippet('forward-auth.md', 'caddyfile', ports)),
      () => LIMIT,
    ),
}

export const proxies: AttackGroup = { title: 'Behind proxies', attacks: [crowdAtNginx, crowdAtCaddy] }
