import type { RuleLimiter } from 'headgate'
import type { Endpoint } from '../admin/endpoint.js'
import type { ConfigCounts } from '../admin/probes.js'
import type { WriteLine } from '../log/write-line.js'
import { watchDescriptors } from './config/watch-descriptors.js'
import type { GrpcTls } from './grpc/grpc-server.js'
import { jsonEndpoint } from './json-endpoint.js'
import { createRateLimitService, type RateLimitService } from './rate-limit-service.js'

/** Envoy's rate limit service: where it listens, and where its limits are. */
export interface EnvoyOptions {
  /** A file of envoyproxy/ratelimit, or a folder of them. */
  readonly configPath: string
  readonly host: string
  readonly port: number
  readonly tls: GrpcTls | null
  readonly shadow: boolean
  readonly headers: boolean
  readonly metadata: boolean
}

/** The service that decides, over whichever protocol it is asked. */
export interface RateLimits {
  readonly service: RateLimitService
  /** For the admin port. */
  readonly endpoint: Endpoint
  /** Whether its files are in use as they are. */
  configState(): ConfigCounts
  close(): void
}

export interface Envoy {
  readonly port: number
  /** For the admin port. */
  readonly endpoint: Endpoint
  /** Whether its files are in use as they are. */
  configState(): ConfigCounts
  stop(withinMs: number): Promise<void>
}

/** Loads the limits; rejects if it cannot. */
export async function openRateLimits(
  options: EnvoyOptions,
  limiter: RuleLimiter,
  log: WriteLine,
): Promise<RateLimits> {
  const { configPath, shadow, headers, metadata } = options
  const limits = await watchDescriptors(configPath, log)
  const service = createRateLimitService({ limiter, config: limits.current, shadow, headers, metadata })
  return { service, endpoint: jsonEndpoint(service), configState: limits.state, close: limits.close }
}

/** Loads the limits and starts listening; rejects if it cannot. */
export async function startEnvoy(
  options: EnvoyOptions,
  limiter: RuleLimiter,
  log: WriteLine,
): Promise<Envoy> {
  const { host, port, tls } = options
  const { service, endpoint, configState, close } = await openRateLimits(options, limiter, log)
  // Loaded on demand, because gRPC takes longer to load than everything else.
  const { startGrpcServer } = await import('./grpc/grpc-server.js')
  try {
    const server = await startGrpcServer({ service, host, port, tls, log })
    return {
      port: server.port,
      endpoint,
      configState,
      stop(withinMs) {
        close()
        return server.stop(withinMs)
      },
    }
  } catch (error) {
    close()
    throw error
  }
}
