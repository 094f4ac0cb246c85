import { type ClientAddress, createClientAddress } from 'headgate'
import type { Config, UpstreamConfig } from 'headgate/config'
import { type Identify, identifyByConfig } from 'headgate/identify'
import { createFindRoute, type FindRoute } from './routes.js'
import { createUpstreamPool, type UpstreamPool, type UpstreamSettings } from './upstream-pool.js'

/** Everything by which requests are forwarded until the next configuration: replaced as a whole, never changed. */
export interface Serving {
  readonly findRoute: FindRoute<UpstreamPool>
  readonly pools: readonly UpstreamPool[]
  /** Finds the client's address from the peer and what trusted proxies say. */
  readonly clientAddress: ClientAddress
  /** Identifies the caller. */
  readonly identify: Identify
}

export interface ServingOptions extends UpstreamSettings {
  /** Replaces the configuration's. */
  readonly upstream?: UpstreamConfig | null
  /** The previous configuration: unchanged upstreams keep their connections and their health. */
  readonly before?: Serving
}

/** Builds everything that a configuration needs to serve requests. */
export function createServing(config: Config, options: ServingOptions = {}): Serving {
  const upstream = options.upstream ?? config.upstream
  if (upstream === null && config.routes.length === 0) {
    throw new Error('upstream: expected one in the policy file; got none')
  }
  const pools = new Map<string, UpstreamPool>()
  const earlier = new Map(options.before?.pools.map(pool => [keyOf(pool.config), pool]))
  const open = (wanted: UpstreamConfig): UpstreamPool => {
    const key = keyOf(wanted)
    const pool = pools.get(key) ?? earlier.get(key) ?? createUpstreamPool(wanted, options)
    pools.set(key, pool)
    return pool
  }
  return {
    findRoute: createFindRoute({ routes: config.routes, upstream }, open),
    pools: [...pools.values()],
    clientAddress: createClientAddress(config),
    identify: identifyByConfig(config),
  }
}

/** Closes the connections of upstreams that are no longer in use. */
export function closeUnused(before: Serving, after: Serving): void {
  for (const pool of before.pools) if (!after.pools.includes(pool)) pool.close()
}

function keyOf(config: UpstreamConfig): string {
  const { urls, host, timeoutMs, connectTimeoutMs, concurrency } = config
  return JSON.stringify([urls, host, timeoutMs, connectTimeoutMs, concurrency])
}
