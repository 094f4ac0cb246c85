/**
 * Keeps every connection of a server within bounds of time and number. node:http bounds the time of a request's
 * head; this covers the rest: how long a connection may idle with stray line ends, how slowly a body may come, how
 * long a client may not read, how many requests may wait on one connection, and how many connections one client
 * has.
 */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { MAX_DRAINED_BYTES } from 'headgate/internal'
import { countInFlight } from './count-in-flight.js'
import { problemAnswer } from './problem.js'
import { createRateFloor, type RateFloor } from './rate-floor.js'
import { sendAnswer } from './send-answer.js'

/** 0 lifts a bound. */
export interface ConnectionBounds {
  readonly maxClientConnections: number
  readonly maxPipelined: number
  readonly minBodyRate: number
  readonly bodyGraceMs: number
  readonly responseTimeoutMs: number
}

/**
 * Called for every request that is answered here, and every connection that is closed because of a bound, with the
 * reason; a status of null means without an answer.
 */
export type OnEnded = (reason: string, status: number | null, socket: Socket) => void

export type Handler = (req: IncomingMessage, res: ServerResponse) => void

/** The connections of a server, within their bounds. */
export interface BoundConnections {
  /** Wraps the handler of the server; only a wrapped one is bounded. */
  bound(handler: Handler): Handler
  /**
   * Hands a connection to somebody else; it still counts as its client's. Returns false if answers are still due on
   * it.
   */
  handOver(socket: Socket): boolean
  /** Says whether the client has yet to be asked for its body (`Expect: 100-continue`): until then it is not late. */
  holdBody(socket: Socket, isHeld: boolean): void
  /**
   * Ends every connection: after the response in flight, which says so if it has not begun, or after the next one. One
   * that is idle is closed when its client has had a moment to send what it was about to.
   */
  drain(): void
  /** Whether nothing is due on a connection, and no request has begun to arrive. */
  isIdle(socket: Socket): boolean
  /** How many are open. */
  count(): number
}

interface Connection {
  readonly socket: Socket
  /** Unfinished responses, in the order of their requests. */
  readonly responses: Set<ServerResponse>
  /** The latest request and its response. */
  last: { readonly req: IncomingMessage; readonly res: ServerResponse } | null
  /** When the last response was finished, or the connection opened, and how many bytes had come by then. */
  idleSinceMs: number
  idleSinceBytes: number
  readonly body: RateFloor
  /** Whether the client of the latest request has yet to be asked for its body. */
  isBodyHeld: boolean
  /** Bytes that have left this process, and when that number last changed or there was nothing to send. */
  sent: { bytes: number; atMs: number }
  /** How many bytes had come when there was one request too many; null if there was none. */
  overrunAtBytes: number | null
}

const SWEEP_MS = 1_000
/** More than keep-alive and waiting for the next head take together (5 s and 10 s). */
const MAX_IDLE_MS = 20_000
/** For a client that was promised a kept connection and may be sending on it. */
const DRAIN_IDLE_MS = 500
const DRAIN_SWEEP_MS = 25

/**
 * Watches the connections of a server that is not yet listening. `clientOf` returns whose a connection is, or null
 * for one without a bound.
 */
export function boundConnections(
  server: Server,
  bounds: ConnectionBounds,
  clientOf: (socket: Socket) => string | null,
  onEnded: OnEnded = () => {},
): BoundConnections {
  const connections = new Map<Socket, Connection>()
  const perClient = countInFlight(bounds.maxClientConnections)

  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket)
    const leave = client === null ? () => {} : perClient.enter(client)
    if (leave === null) {
      onEnded('client-connections', null, socket)
      return void socket.destroy()
    }
    const connection = open(socket, bounds)
    connections.set(socket, connection)
    socket.once('close', () => {
      connections.delete(socket)
      leave()
      abandonQueued(connection)
    })
  })

  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket
    const mistake = mistakeOf(error)
    const [first] = connections.get(socket)?.responses ?? []
    // A request that is being answered has its answer, whatever comes of the rest of its body.
    if (mistake !== null && socket.writable && first?.headersSent !== true) {
      onEnded(mistake.reason, mistake.status, socket)
      socket.write(bareAnswer(mistake.status))
    }
    socket.destroy(error)
  })

  const sweep = setInterval(() => {
    const nowMs = performance.now()
    for (const connection of connections.values()) check(connection, bounds, nowMs, onEnded)
  }, SWEEP_MS)
  sweep.unref()
  let isDraining = false
  let drainSweep: NodeJS.Timeout | undefined
  server.once('close', () => {
    clearInterval(sweep)
    clearInterval(drainSweep)
  })

  return {
    count: () => connections.size,
    isIdle: socket => {
      const connection = connections.get(socket)
      return connection !== undefined && isIdle(connection)
    },
    bound: handler => (req, res) => {
      const connection = connections.get(req.socket)
      if (connection === undefined) return
      const wasWithin = connection.overrunAtBytes === null
      if (!mayBeHandled(connection, bounds, req, res)) {
        if (wasWithin) onEnded('pipelined', null, req.socket)
        return
      }
      if (isDraining) res.shouldKeepAlive = false
      handler(req, res)
    },
    handOver(socket) {
      const connection = connections.get(socket)
      connections.delete(socket)
      return connection !== undefined && connection.responses.size === 0 && connection.overrunAtBytes === null
    },
    holdBody(socket, isHeld) {
      const connection = connections.get(socket)
      if (connection === undefined) return
      connection.isBodyHeld = isHeld
      connection.body.restart(performance.now(), socket.bytesRead)
    },
    drain() {
      isDraining = true
      const beganMs = performance.now()
      for (const { last } of connections.values()) if (last !== null) announceEnd(last.res)
      drainSweep = setInterval(() => {
        const idleBeforeMs = performance.now() - DRAIN_IDLE_MS
        if (beganMs > idleBeforeMs) return
        for (const connection of connections.values())
          if (isIdle(connection) && connection.idleSinceMs <= idleBeforeMs) connection.socket.destroySoon()
      }, DRAIN_SWEEP_MS)
    },
  }
}

function open(socket: Socket, { minBodyRate, bodyGraceMs }: ConnectionBounds): Connection {
  const nowMs = performance.now()
  return {
    socket,
    responses: new Set(),
    last: null,
    idleSinceMs: nowMs,
    idleSinceBytes: socket.bytesRead,
    body: createRateFloor({ bytesPerSecond: minBodyRate, graceMs: bodyGraceMs }),
    isBodyHeld: false,
    sent: { bytes: 0, atMs: nowMs },
    overrunAtBytes: null,
  }
}

/**
 * Whether a request is handled. What is pipelined beyond the bound, or after a request that ends the connection, is
 * neither answered, decided nor charged: the connection closes after the last admitted request, and clients send
 * the others again (RFC 9112, 9.3.2).
 */
function mayBeHandled(
  connection: Connection,
  bounds: ConnectionBounds,
  req: IncomingMessage,
  res: ServerResponse,
): boolean {
  const { socket, responses, last } = connection
  const isFull = bounds.maxPipelined > 0 && responses.size >= bounds.maxPipelined
  const isEnding = last !== null && !last.res.shouldKeepAlive
  if (connection.overrunAtBytes !== null || isFull || isEnding) {
    if (connection.overrunAtBytes === null) closeAfterLast(connection)
    return false
  }
  // Forwarding listens for the end of a response in a dozen places; their number is fixed.
  res.setMaxListeners(0)
  responses.add(res)
  connection.last = { req, res }
  connection.isBodyHeld = false
  connection.body.restart(performance.now(), socket.bytesRead)
  res.once('close', () => {
    responses.delete(res)
    connection.idleSinceMs = performance.now()
    connection.idleSinceBytes = socket.bytesRead
    if (connection.overrunAtBytes !== null && responses.size === 0) socket.destroySoon()
  })
  return true
}

function closeAfterLast(connection: Connection): void {
  connection.overrunAtBytes = connection.socket.bytesRead
  const last = [...connection.responses].at(-1)
  if (last !== undefined) announceEnd(last)
  connection.socket.pause()
}

/** Has a response say that its connection ends with it, unless it has begun. */
function announceEnd(res: ServerResponse): void {
  if (!res.headersSent) res.shouldKeepAlive = false
}

function isIdle({ socket, responses, last, idleSinceBytes }: Connection): boolean {
  const isBodyDue = last !== null && !last.req.complete
  return responses.size === 0 && !isBodyDue && socket.bytesRead === idleSinceBytes
}

/** Node does not tell a queued response, nor its upstream, that its connection has gone. */
function abandonQueued({ responses }: Connection): void {
  for (const res of responses) {
    if (res.socket !== null) continue
    res.destroy()
    res.emit('close')
  }
}

function check(connection: Connection, bounds: ConnectionBounds, nowMs: number, onEnded: OnEnded): void {
  const { socket, responses, last } = connection
  const close = (reason: string) => {
    onEnded(reason, null, socket)
    socket.destroy()
  }
  const isBodyDue = last !== null && !last.req.complete
  const isQuiet = !isBodyDue && responses.size === 0
  if (isBodyDue && isTooSlow(connection, last, nowMs)) rejectSlowBody(connection, last, onEnded)
  else if (hasOverrun(connection)) socket.destroy()
  else if (hasStalled(connection, bounds, nowMs)) close('unread')
  else if (isQuiet && nowMs - connection.idleSinceMs > MAX_IDLE_MS) socket.destroy()
}

function hasOverrun({ socket, overrunAtBytes }: Connection): boolean {
  return overrunAtBytes !== null && socket.bytesRead - overrunAtBytes > MAX_DRAINED_BYTES
}

function hasStalled(
  { socket, sent }: Connection,
  { responseTimeoutMs }: ConnectionBounds,
  nowMs: number,
): boolean {
  const bytes = socket.bytesWritten - socket.writableLength
  if (socket.writableLength === 0 || bytes !== sent.bytes) {
    sent.bytes = bytes
    sent.atMs = nowMs
  }
  return responseTimeoutMs > 0 && nowMs - sent.atMs > responseTimeoutMs
}

function isTooSlow(
  { socket, body, isBodyHeld }: Connection,
  { req, res }: NonNullable<Connection['last']>,
  nowMs: number,
): boolean {
  // Bytes we have not read yet are not the client's fault: it cannot send more before the upstream reads.
  if (req.readableLength > 0 || (isBodyHeld && !res.headersSent)) {
    body.restart(nowMs, socket.bytesRead)
    return false
  }
  return body.isBelow(nowMs, socket.bytesRead)
}

function rejectSlowBody(
  { socket }: Connection,
  { req, res }: NonNullable<Connection['last']>,
  onEnded: OnEnded,
): void {
  const isAnswering = res.headersSent || res.socket === null
  onEnded('slow-body', isAnswering ? null : 408, socket)
  if (isAnswering) return void socket.destroy()
  res.shouldKeepAlive = false
  sendAnswer(req, res, problemAnswer({ status: 408, detail: 'The body came too slowly.' }))
}

/** Returns what was wrong with bytes that are no request; null for a connection that broke. */
function mistakeOf({ code = '' }: NodeJS.ErrnoException): { status: number; reason: string } | null {
  if (code === 'HPE_HEADER_OVERFLOW') return { status: 431, reason: 'header-size' }
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return { status: 413, reason: 'malformed' }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return { status: 408, reason: 'header-timeout' }
  return code.startsWith('HPE_') ? { status: 400, reason: 'malformed' } : null
}

function bareAnswer(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`
}
