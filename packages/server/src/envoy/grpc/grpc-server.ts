/** Envoy's rate limit service over gRPC. */
import { readFile } from 'node:fs/promises'
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js'
import { listen } from '../../http/listen.js'
import { throttledLog, type WriteLine } from '../../log/write-line.js'
import { AskError } from '../descriptor.js'
import { type RateLimitService, UnavailableError } from '../rate-limit-service.js'
import { type AcceptorBounds, createAcceptor, DEFAULT_ACCEPTOR_BOUNDS } from './grpc-acceptor.js'
import { createHealth, HEALTH_METHODS } from './health.js'
import { decodeAsk, encodeReply, METHOD } from './wire-format.js'

/** The files with a certificate and its key. */
export interface GrpcTls {
  readonly certFile: string
  readonly keyFile: string
  /** The authority of callers' certificates; null: none is required. */
  readonly clientCaFile: string | null
}

export interface GrpcServerOptions {
  readonly service: RateLimitService
  readonly host: string
  readonly port: number
  readonly tls: GrpcTls | null
  readonly log: WriteLine
  /** Default: `DEFAULT_ACCEPTOR_BOUNDS`. */
  readonly bounds?: Partial<AcceptorBounds>
}

export interface GrpcServer {
  readonly port: number
  /** Reports that it is not serving, finishes requests in flight, and closes everything within the time. */
  stop(withinMs: number): Promise<void>
}

const MAX_MESSAGE_BYTES = 256 * 1024
const FAULT_LINE_EVERY_MS = 60_000
/** Envoy reconnects when it has something to ask again. */
const MAX_IDLE_MS = 300_000
/** A peer that does not answer a ping is gone, or never spoke HTTP/2. */
const PING_AFTER_MS = 30_000
const PING_ANSWER_WITHIN_MS = 10_000

/** Decoded here, because grpc-js would answer an invalid message with INTERNAL, as if it were our fault. */
const RAW_METHOD: MethodDefinition<Buffer, Buffer> = {
  ...METHOD,
  requestDeserialize: bytes => bytes,
  requestSerialize: bytes => bytes,
  responseSerialize: bytes => bytes,
  responseDeserialize: bytes => bytes,
}

/** Starts listening; rejects with the reason if it cannot. */
export async function startGrpcServer({
  service,
  host,
  port,
  tls,
  log,
  bounds,
}: GrpcServerOptions): Promise<GrpcServer> {
  const logFault = throttledLog(log, FAULT_LINE_EVERY_MS)
  const health = createHealth()
  const server = new Server({
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    // Envoy keeps a few connections open and asks for many callers on each.
    'grpc.max_concurrent_streams': 10_000,
    'grpc.max_connection_idle_ms': MAX_IDLE_MS,
    'grpc.keepalive_time_ms': PING_AFTER_MS,
    'grpc.keepalive_timeout_ms': PING_ANSWER_WITHIN_MS,
  })

  async function shouldRateLimit(
    { request }: ServerUnaryCall<Buffer, Buffer>,
    answer: sendUnaryData<Buffer>,
  ): Promise<void> {
    try {
      answer(null, encodeReply(await service(decodeAsk(request))))
    } catch (error) {
      answer(failureOf(error, logFault))
    }
  }

  server.addService({ ShouldRateLimit: RAW_METHOD }, { ShouldRateLimit: shouldRateLimit })
  server.addService(HEALTH_METHODS, health.implementation)
  const injector = server.createConnectionInjector(await credentialsOf(tls))
  const acceptor = createAcceptor({ ...DEFAULT_ACCEPTOR_BOUNDS, ...bounds }, socket =>
    injector.injectConnection(socket),
  )
  const place = { host, port, hostFlag: '--grpc-host', portFlag: '--grpc-port' }
  const bound = await listen(acceptor.server, place)
  return {
    port: bound,
    async stop(withinMs) {
      health.stopServing()
      acceptor.close()
      await shutDown(server, withinMs)
      acceptor.destroy()
    },
  }
}

/** Never answers UNKNOWN: only an error lets Envoy's own failure mode decide. */
function failureOf(error: unknown, logFault: ReturnType<typeof throttledLog>) {
  const { message } = error as Error
  if (error instanceof AskError) return { code: status.INVALID_ARGUMENT, details: message }
  if (!(error instanceof UnavailableError)) logFault('envoy', () => `ShouldRateLimit failed: ${message}`)
  return { code: status.UNAVAILABLE, details: 'the limits cannot be looked at' }
}

async function credentialsOf(tls: GrpcTls | null): Promise<ServerCredentials> {
  if (tls === null) return ServerCredentials.createInsecure()
  const [cert_chain, private_key, ca] = await Promise.all([
    readFile(tls.certFile),
    readFile(tls.keyFile),
    tls.clientCaFile === null ? null : readFile(tls.clientCaFile),
  ])
  return ServerCredentials.createSsl(ca, [{ cert_chain, private_key }], ca !== null)
}

function shutDown(server: Server, withinMs: number): Promise<void> {
  return new Promise(resolve => {
    const force = setTimeout(() => {
      server.forceShutdown()
      resolve()
    }, withinMs)
    server.tryShutdown(() => {
      clearTimeout(force)
      resolve()
    })
  })
}
