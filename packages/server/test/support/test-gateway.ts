import { type Config, createLimiter, type RuleLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import type { TrustedProxies } from 'headgate/identify'
import { type ForwardedHeader, upstreamOf } from 'headgate/internal'
import { createGateway } from '../../src/gateway/gateway.js'
import { createServing } from '../../src/gateway/serving.js'
import type { TokenListener } from '../../src/gateway/token-reservation.js'
import type { Bounds } from '../../src/http/bounds.js'
import { listen } from '../../src/http/listen.js'
import type { AccessEntry } from '../../src/log/server-log.js'

export interface TestGateway {
  readonly url: string
  readonly logged: string[]
  close(): Promise<void>
}

export interface TestGatewayOptions {
  readonly limit?: number
  readonly limiter?: RuleLimiter
  readonly upstreamTimeoutMs?: number
  readonly trustedProxies?: TrustedProxies
  /** A whole policy file instead of the one limit. */
  readonly config?: Config
  readonly forwardedHeader?: ForwardedHeader
  readonly bounds?: Partial<Bounds>
  /** An authority to trust for upstreams, in PEM. */
  readonly upstreamCa?: string
  onAccess?(entry: AccessEntry): void
  readonly tokens?: TokenListener
}

/**
 * Starts a gateway in this process in front of `upstreamUrl`, or if that is null of the config's upstream, with one
 * limit a minute for every client address.
 */
export async function startGateway(
  upstreamUrl: string | null,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const { limit = 1_000, upstreamTimeoutMs } = options
  const config =
    options.config ??
    defineConfig({
      policies: { api: slidingWindowLog({ limit, window: '1m' }) },
      default: { policy: 'api' },
      trustedProxies: options.trustedProxies ?? [],
      forwardedHeader: options.forwardedHeader ?? 'x-forwarded-for',
    })
  const serving = createServing(config, {
    upstream: upstreamUrl === null ? null : upstreamOf(upstreamUrl),
    ...(options.upstreamCa !== undefined && { ca: options.upstreamCa }),
    ...(upstreamTimeoutMs !== undefined && { timeoutMs: upstreamTimeoutMs }),
  })
  const logged: string[] = []
  const { server } = createGateway({
    limiter: options.limiter ?? createLimiter({ config }),
    serving: () => serving,
    log: line => logged.push(line),
    bounds: options.bounds ?? {},
    onAccess: options.onAccess,
    tokens: options.tokens,
  })
  const port = await listen(server, { host: '127.0.0.1', port: 0, hostFlag: '--host', portFlag: '--port' })
  return {
    url: `http://127.0.0.1:${port}`,
    logged,
    close: () =>
      new Promise(resolve => {
        server.close(() => {
          for (const pool of serving.pools) pool.close()
          resolve()
        })
        server.closeAllConnections()
      }),
  }
}
