/** Envoy's rate limit service over gRPC. */
import { readFile } from 'node:fs/promises'
import type { SecureServerOptions } from 'node:http2'
import { listen } from '../../http/listen.js'
import { throttledLog, type WriteLine } from '../../log/write-line.js'
import { AskError } from '../descriptor.js'
import { type RateLimitService, UnavailableError } from '../rate-limit-service.js'
import { CallError, STATUS } from './call-error.js'
import { type CallBounds, createCallServer, DEFAULT_CALL_BOUNDS, type Method } from './call-server.js'
import { type AcceptorBounds, createAcceptor, DEFAULT_ACCEPTOR_BOUNDS } from './grpc-acceptor.js'
import { createHealth } from './health.js'
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
  /** Default: `DEFAULT_ACCEPTOR_BOUNDS` and `DEFAULT_CALL_BOUNDS`. */
  readonly bounds?: Partial<AcceptorBounds & CallBounds>
}

export interface GrpcServer {
  readonly port: number
  /** Reports that it is not serving, finishes requests in flight, and closes everything within the time. */
  stop(withinMs: number): Promise<void>
}

const FAULT_LINE_EVERY_MS = 60_000

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

  async function shouldRateLimit(message: Buffer): Promise<Buffer> {
    try {
      return encodeReply(await service(decodeAsk(message)))
    } catch (error) {
      throw failureOf(error, logFault)
    }
  }

  const methods = new Map<string, Method>([[METHOD.path, { answer: shouldRateLimit }], ...health.methods])
  const files = tls === null ? null : await readTls(tls)
  const calls = createCallServer(methods, files, { ...DEFAULT_CALL_BOUNDS, ...bounds })
  const acceptor = createAcceptor({ ...DEFAULT_ACCEPTOR_BOUNDS, ...bounds }, calls.accept)
  const place = { host, port, hostFlag: '--grpc-host', portFlag: '--grpc-port' }
  const bound = await listen(acceptor.server, place)
  return {
    port: bound,
    async stop(withinMs) {
      health.stopServing()
      acceptor.close()
      await calls.stop(withinMs)
      acceptor.destroy()
    },
  }
}

/** Never answers UNKNOWN: only an error lets Envoy's own failure mode decide. */
function failureOf(error: unknown, logFault: ReturnType<typeof throttledLog>): CallError {
  const { message } = error as Error
  if (error instanceof AskError) return new CallError(STATUS.invalidArgument, message)
  if (!(error instanceof UnavailableError)) logFault('envoy', () => `ShouldRateLimit failed: ${message}`)
  return new CallError(STATUS.unavailable, 'the limits cannot be looked at')
}

async function readTls({ certFile, keyFile, clientCaFile }: GrpcTls): Promise<SecureServerOptions> {
  const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)])
  if (clientCaFile === null) return { cert, key }
  return { cert, key, ca: await readFile(clientCaFile), requestCert: true, rejectUnauthorized: true }
}
