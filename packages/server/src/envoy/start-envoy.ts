import type { Gate } from 'headgate'
import type { Endpoint } from '../admin/endpoint.js'
import type { Log } from '../gateway/throttled-log.js'
import { watchDescriptors } from './config/watch-descriptors.js'
import { type GrpcTls, startGrpcServer } from './grpc/grpc-server.js'
import { jsonEndpoint } from './json-endpoint.js'
import { createRateLimitService } from './rate-limit-service.js'

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

export interface Envoy {
  readonly port: number
  /** For the admin port. */
  readonly endpoint: Endpoint
  stop(withinMs: number): Promise<void>
}

/** Loads the limits and starts listening; rejects if it cannot. */
export async function startEnvoy(options: EnvoyOptions, gate: Gate, log: Log): Promise<Envoy> {
  const { configPath, host, port, tls, shadow, headers, metadata } = options
  const limits = await watchDescriptors(configPath, log)
  const service = createRateLimitService({ gate, config: limits.current, shadow, headers, metadata })
  try {
    const server = await startGrpcServer({ service, host, port, tls, log })
    return {
      port: server.port,
      endpoint: jsonEndpoint(service),
      stop(withinMs) {
        limits.close()
        return server.stop(withinMs)
      },
    }
  } catch (error) {
    limits.close()
    throw error
  }
}
