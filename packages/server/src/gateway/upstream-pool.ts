import { parseUpstream, type Upstream, type UpstreamConfig } from 'headgate/internal'
import { type AdaptiveConcurrency, adaptiveConcurrency } from 'headgate/outbound'
// Not from undici's entry, which also loads fetch, caches and mocks: 9 MB of memory.
import Pool from 'undici/lib/dispatcher/pool.js'
import { createServerHealth, type ServerHealth } from './server-health.js'

/** A server of an upstream, and the connections kept to it. */
export interface UpstreamServer {
  readonly upstream: Upstream
  readonly connections: Pool
  readonly health: ServerHealth
  /** Requests in flight. */
  inFlight: number
}

/** A group of interchangeable servers. */
export interface UpstreamPool {
  readonly config: UpstreamConfig
  readonly servers: readonly UpstreamServer[]
  /** The adaptive bound of requests at once; null if there is none. */
  readonly concurrency: AdaptiveConcurrency | null
  /** Chooses the healthy server with the fewest requests in flight that was not tried yet; null if all were. */
  choose(tried: readonly UpstreamServer[]): UpstreamServer | null
  /** Keeps it open for a request that may be sent to it, until the returned function is called. */
  hold(): () => void
  /** Closes the kept connections, once nobody holds it any more and requests in flight have ended. */
  close(): void
}

/** Settings of the connections to every upstream. */
export interface UpstreamSettings {
  /** An authority to trust in addition to Node's, in PEM. */
  readonly ca?: string
  /** Replaces the configuration's. */
  readonly timeoutMs?: number
}

/** Less than servers keep an idle connection (Node: 5 s), so that we seldom write to one that is being closed. */
const IDLE_MS = 4_000
/** How many requests may wait for their turn at an upstream. */
const MOST_WAITING = 1_000

export function createUpstreamPool(config: UpstreamConfig, settings: UpstreamSettings): UpstreamPool {
  const servers = config.urls.map((url): UpstreamServer => {
    const upstream = parseUpstream(url)
    if (upstream === null) throw new Error('upstream: expected http://host:port or https://host:port')
    return {
      upstream,
      connections: connect(upstream, config, settings),
      health: createServerHealth(),
      inFlight: 0,
    }
  })
  // Servers with equally few take turns.
  let turn = 0

  function choose(tried: readonly UpstreamServer[]): UpstreamServer | null {
    const [only] = servers
    if (servers.length === 1) return only !== undefined && tried.length === 0 ? only : null
    const left = servers.filter(server => !tried.includes(server))
    const nowMs = performance.now()
    const up = left.filter(({ health }) => health.isUp(nowMs))
    turn++
    // If none is healthy, using one is the only way to find out that it is back.
    const chosen = leastLoaded(up.length > 0 ? up : left, turn)
    chosen?.health.asked(nowMs)
    return chosen
  }

  let holders = 0
  let isUnwanted = false
  function closeIfUnheld(): void {
    if (!isUnwanted || holders > 0) return
    for (const { connections } of servers) connections.close().catch(() => {})
  }

  return {
    config,
    servers,
    concurrency:
      config.concurrency === undefined
        ? null
        : adaptiveConcurrency({ ...config.concurrency, maxWaiting: MOST_WAITING }),
    choose,
    hold() {
      holders++
      return () => {
        holders--
        closeIfUnheld()
      }
    },
    close() {
      isUnwanted = true
      closeIfUnheld()
    },
  }
}

/** Returns host and port of the first server, as in the policy file and never as in a request. */
export function poolName({ servers }: UpstreamPool): string {
  return servers[0]?.upstream.authority ?? ''
}

function leastLoaded(servers: readonly UpstreamServer[], turn: number): UpstreamServer | null {
  let least: UpstreamServer | null = null
  for (let index = 0; index < servers.length; index++) {
    const server = servers[(turn + index) % servers.length] as UpstreamServer
    if (least === null || server.inFlight < least.inFlight) least = server
  }
  return least
}

/** Certificates are verified against the name in the URL; a failure counts as an unreachable server. */
function connect(upstream: Upstream, config: UpstreamConfig, { ca, timeoutMs }: UpstreamSettings): Pool {
  return new Pool(upstream.origin, {
    connections: null,
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    headersTimeout: timeoutMs ?? config.timeoutMs,
    // An answer that has begun may pause as long as it likes: it may be a stream of events.
    bodyTimeout: 0,
    connect: { timeout: config.connectTimeoutMs, ...(ca !== undefined && { ca }) },
  })
}
