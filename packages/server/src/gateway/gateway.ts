import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Http2Server } from 'node:http2'
import type { Socket } from 'node:net'
import { limitedAddress } from 'headgate/identify'
import { type MaybePromise, peerAddress } from 'headgate/internal'
import { type BoundConnections, boundConnections } from '../http/bound-connections.js'
import { type Bounds, DEFAULT_BOUNDS } from '../http/bounds.js'
import { requestIdOf } from '../http/http-request.js'
import { problemAnswer } from '../http/problem.js'
import { isGone } from '../http/write-head.js'
import type { AccessEntry } from '../log/server-log.js'
import { throttledLog } from '../log/write-line.js'
import { type Admission, type AdmitOptions, createAdmit, pathOf } from './admit.js'
import { forward, type Listeners } from './forward.js'
import { createHttp2Front } from './http2-front.js'
import { createOwnAnswers, type OnOwnAnswer } from './own-answers.js'
import { rejectUpgrade } from './reject-request.js'
import { isWebSocket, openTunnel } from './websocket.js'
import { withoutOffer } from './without-offer.js'

export interface GatewayOptions extends Omit<AdmitOptions, 'bounds'> {
  /** Called for every request when it has ended. */
  readonly onAccess?: ((entry: AccessEntry) => void) | undefined
  /** Called for every attempt to have a request answered by an upstream. */
  readonly onAttempt?: Listeners['onAttempt']
  /** Called for everything the gateway answers itself or closes, not because of a limit. */
  readonly onOwnAnswer?: OnOwnAnswer
  /** Default: `DEFAULT_BOUNDS`. */
  readonly bounds?: Partial<Bounds>
}

/** A gateway that is not yet listening. */
export interface Gateway {
  readonly server: Server
  readonly connections: BoundConnections
  /** For sessions of HTTP/2, through its event `connection`. */
  readonly http2: Http2Server
}

const HEADERS_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 5_000
/** How often Node looks for overdue headers; its default of 30 s would be three times too late. */
const OVERDUE_CHECK_MS = 2_000
const FAILURE_LINE_EVERY_MS = 5_000
const FAULT_LINE_EVERY_MS = 60_000
/** Finds connections whose client has vanished. */
const PROBE_AFTER_MS = 30_000
const NO_TUNNELS = problemAnswer({
  status: 501,
  reason: 'connect',
  detail: 'CONNECT: this gateway makes no tunnels',
})
const FAILED = problemAnswer({ status: 500, reason: 'fault', detail: 'The gateway failed.' })

/** Builds a gateway in front of upstreams. A request is decided before any of its body is read. */
export function createGateway(options: GatewayOptions): Gateway {
  const { serving, log, onAccess, onAttempt } = options
  const bounds: Bounds = { ...DEFAULT_BOUNDS, ...options.bounds }
  const admit = createAdmit({ ...options, bounds })
  // A throttle of its own, so that a flood of denials does not keep a failing upstream out of the log.
  const logFailure = throttledLog(log, FAILURE_LINE_EVERY_MS)
  const logFault = throttledLog(log, FAULT_LINE_EVERY_MS)
  const onFailure = (reason: string) =>
    logFailure('upstream', () => reason, {
      level: 'warn',
      cause: reason,
      consequence: 'the client got a 5xx',
    })
  const onFault = (error: unknown) => {
    const { message: cause } = error as Error
    logFault('gateway', () => `request failed: ${cause}`, { level: 'error', cause, consequence: '500' })
  }

  const own = createOwnAnswers({ ...options, cors: () => serving().cors })
  const listeners: Listeners = { onFailure, onAttempt, own }

  function handle(req: IncomingMessage, res: ServerResponse): MaybePromise<void> {
    // An offer of another protocol may be followed by bytes of that protocol.
    if (req.headers.upgrade !== undefined && req.httpVersionMajor === 1) res.shouldKeepAlive = false
    const beganMs = onAccess === undefined ? 0 : performance.now()
    let isContinued = req.httpVersion !== '1.1' || req.headers.expect === undefined
    const sendContinue = () => {
      if (isContinued) return
      isContinued = true
      res.writeContinue()
      connections.holdBody(req.socket, false)
    }
    if (!isContinued) connections.holdBody(req.socket, true)
    const admission = admit(req, sendContinue)
    if (admission !== null && 'then' in admission)
      return admission.then(known => proceed(req, res, known, beganMs, sendContinue))
    proceed(req, res, admission, beganMs, sendContinue)
  }

  function proceed(
    req: IncomingMessage,
    res: ServerResponse,
    admission: Admission | null,
    beganMs: number,
    sendContinue: () => void,
  ): void {
    // The client has already gone.
    if (admission === null) return void req.socket.destroy()
    if (isGone(res)) return void admission.leave(null)
    res.once('close', () => {
      admission.leave(res.headersSent ? res.statusCode : null)
      onAccess?.(accessEntry(req, res.statusCode, admission, beganMs))
    })
    if (admission.answer !== null) return void own.send(req, res, admission.answer)
    sendContinue()
    forward({ req, res, admitted: admission }, listeners)
  }

  async function upgrade(req: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const admission = await admit(req, () => {})
    if (admission === null || socket.destroyed) {
      admission?.leave(null)
      return void socket.destroy()
    }
    socket.once('close', () => admission.leave(null))
    if (admission.answer !== null) own.end(socket, admission.answer)
    else openTunnel({ req, socket, head }, admission, listeners)
  }

  // We check Host and the number of headers ourselves, with a better answer: Node silently drops headers beyond a
  // count. Its timeout for a whole request would cut long uploads, so our minimum rate of a body replaces it.
  const server = createServer({
    requireHostHeader: false,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: 0,
    connectionsCheckingInterval: OVERDUE_CHECK_MS,
    keepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER_MS,
  })
  server.maxHeadersCount = 0
  const whose = ({ remoteAddress }: Socket) =>
    serving().clientAddress.trusts(remoteAddress) ? null : limitedAddress(remoteAddress)
  const connections = boundConnections(server, bounds, whose, own.note)
  const serve = (req: IncomingMessage, res: ServerResponse) => {
    const answerFault = (error: unknown) => {
      onFault(error)
      if (res.headersSent) res.destroy()
      else own.send(req, res, FAILED)
    }
    try {
      handle(req, res)?.catch(answerFault)
    } catch (error) {
      answerFault(error)
    }
  }
  const onRequest = connections.bound(serve)
  server.on('request', onRequest).on('checkContinue', onRequest).on('checkExpectation', onRequest)
  // A tunnel would carry requests that nobody counts.
  server.on('connect', (_req, socket) => own.end(socket as Socket, NO_TUNNELS))
  server.on('upgrade', (req, stream, head) => {
    const socket = stream as Socket
    socket.on('error', () => socket.destroy())
    // Pending answers would be written into what follows.
    if (!connections.handOver(socket)) return void socket.destroy()
    const objection = rejectUpgrade(req)
    if (objection !== null) return own.end(socket, problemAnswer(objection))
    if (!isWebSocket(req)) return withoutOffer(server, { req, socket, head })
    upgrade(req, socket, head).catch(error => {
      onFault(error)
      own.end(socket, FAILED)
    })
  })
  return { server, connections, http2: createHttp2Front(bounds, whose, serve, own) }
}

function accessEntry(
  req: IncomingMessage,
  status: number,
  admission: Admission,
  beganMs: number,
): AccessEntry {
  const { method = '' } = req
  return {
    id: requestIdOf(req) ?? null,
    client: admission.client ?? peerAddress(req.socket.remoteAddress),
    method,
    path: pathOf(req),
    status,
    durationMs: Math.round((performance.now() - beganMs) * 1_000) / 1_000,
    upstream: admission.answer === null ? (admission.pool.config.urls[0] ?? null) : null,
    reference: admission.reference,
  }
}
