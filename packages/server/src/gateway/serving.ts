import type { Config, Decision } from 'headgate'
import { type ClientAddress, createClientAddress, type Identify, identifyByConfig } from 'headgate/identify'
import type { Priority, UpstreamConfig } from 'headgate/internal'
import { type Cors, createCors } from './cors.js'
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
  /** Which pages of other origins may read the gateway's own answers; null: none. */
  readonly cors: Cors | null
  /** How important a request is at an upstream that has not room for all. */
  priorityOf(decision: Decision | null): Priority
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
    cors: config.cors === null ? null : createCors(config.cors),
    priorityOf: createPriorityOf(config),
  }
}

/** By the rule that applied, or else by the caller's tier. */
function createPriorityOf({ rules, tiers }: Config): Serving['priorityOf'] {
  const byRule = new Map(rules.map(({ name, priority }) => [name, priority]))
  const byTier = new Map(Object.entries(tiers).map(([name, { priority }]) => [name, priority]))
  return decision => byRule.get(decision?.rule ?? '') ?? byTier.get(decision?.tier ?? '') ?? 'normal'
}

/** Closes the connections of upstreams that are no longer in use. */
export function closeUnused(before: Serving, after: Serving): void {
  for (const pool of before.pools) if (!after.pools.includes(pool)) pool.close()
}

function keyOf(config: UpstreamConfig): string {
  const { urls, host, timeoutMs, connectTimeoutMs, concurrency } = config
  return JSON.stringify([urls, host, timeoutMs, connectTimeoutMs, concurrency])
}
