import type { Command } from 'commander'
import type { EnvoyOptions } from '../envoy/start-envoy.js'
import { parsePort } from './number-options.js'
import { UsageError } from './usage-error.js'

/** The flags of Envoy's rate limit service, as typed. */
export interface EnvoyFlags {
  readonly ratelimitConfig?: string
  readonly ratelimitShadow?: boolean
  readonly ratelimitHeaders?: boolean
  readonly ratelimitMetadata?: boolean
  readonly grpcHost?: string
  readonly grpcPort?: number
  readonly grpcTlsCert?: string
  readonly grpcTlsKey?: string
  readonly grpcClientCa?: string
}

const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_PORT = 8081

export function addEnvoyFlags(command: Command): void {
  command
    .option(
      '--ratelimit-config <path>',
      "answer Envoy's rate limit protocol from this envoyproxy/ratelimit file, or a folder of them",
    )
    .option('--ratelimit-shadow', 'tell Envoy that every request may pass, whatever its limits say')
    .option('--ratelimit-headers', 'make Envoy add RateLimit-Limit, -Remaining and -Reset to responses')
    .option('--ratelimit-metadata', 'return the question and the metadata of its limits to Envoy')
    .option(
      '--grpc-host <address>',
      `address Envoy's rate limit service listens on (default: "${DEFAULT_HOST}")`,
    )
    .option(
      '--grpc-port <number>',
      `port Envoy's rate limit service listens on; 0 chooses a free one (default: ${DEFAULT_PORT})`,
      parsePort,
    )
    .option('--grpc-tls-cert <file>', 'certificate of the rate limit service, in PEM (default: no TLS)')
    .option('--grpc-tls-key <file>', 'its private key')
    .option('--grpc-client-ca <file>', 'authority that must have signed the certificates of clients')
}

/** Returns null if there is to be no rate limit service. */
export function envoyOptions(flags: EnvoyFlags): EnvoyOptions | null {
  const { ratelimitConfig, grpcHost = DEFAULT_HOST, grpcPort = DEFAULT_PORT } = flags
  if (ratelimitConfig === undefined) {
    rejectWithout(flags)
    return null
  }
  return {
    configPath: ratelimitConfig,
    host: grpcHost,
    port: grpcPort,
    tls: tlsOf(flags),
    shadow: flags.ratelimitShadow ?? false,
    headers: flags.ratelimitHeaders ?? false,
    metadata: flags.ratelimitMetadata ?? false,
  }
}

const BESIDE = {
  grpcHost: '--grpc-host',
  grpcPort: '--grpc-port',
  grpcTlsCert: '--grpc-tls-cert',
  grpcTlsKey: '--grpc-tls-key',
  grpcClientCa: '--grpc-client-ca',
  ratelimitShadow: '--ratelimit-shadow',
  ratelimitHeaders: '--ratelimit-headers',
  ratelimitMetadata: '--ratelimit-metadata',
}

function rejectWithout(flags: EnvoyFlags): void {
  const given = Object.entries(BESIDE).find(([name]) => flags[name as keyof EnvoyFlags] !== undefined)
  if (given === undefined) return
  throw new UsageError({
    field: given[1],
    expected: 'beside --ratelimit-config, which says what Envoy is answered by',
  })
}

function tlsOf({ grpcTlsCert, grpcTlsKey, grpcClientCa }: EnvoyFlags): EnvoyOptions['tls'] {
  if (grpcTlsCert === undefined && grpcTlsKey === undefined) {
    if (grpcClientCa === undefined) return null
    throw new UsageError({ field: '--grpc-client-ca', expected: 'beside --grpc-tls-cert and --grpc-tls-key' })
  }
  if (grpcTlsCert === undefined || grpcTlsKey === undefined) {
    throw new UsageError({ field: '--grpc-tls-cert', expected: 'together with --grpc-tls-key' })
  }
  return { certFile: grpcTlsCert, keyFile: grpcTlsKey, clientCaFile: grpcClientCa ?? null }
}
