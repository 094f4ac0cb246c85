/**
 * Serves calls of gRPC over HTTP/2: each stream is a call with one message, answered by one or by several. Whatever a
 * client does, a connection has a bounded number of calls, unfinished messages hold a bounded number of bytes per
 * connection and in all, and a call ends in a bounded time.
 */
import {
  constants,
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Stream,
  type ServerOptions,
  type ServerStreamResponseOptions,
} from 'node:http2'
import type { Socket } from 'node:net'
import { CallError, STATUS } from './call-error.js'
import { ENCODINGS, MessageReader, unpack } from './message-reader.js'
import { type Unfinished, type UnfinishedBounds, UnfinishedCalls } from './unfinished-calls.js'

/** Answers the one message of a call with one; rejects with a `CallError` for another status than OK. */
export type Answerer = (message: Buffer) => Promise<Buffer> | Buffer
/** Answers with any number of messages; throws a `CallError` for another status than OK. */
export type Streamer = (message: Buffer, replies: Replies) => void

/** The answers of a call that may go on for as long as its client likes. */
export interface Replies {
  /** The connection that it came by. */
  readonly connection: object
  send(message: Buffer): void
  end(): void
  onClose(listener: () => void): void
}

export type Method = { readonly answer: Answerer } | { readonly stream: Streamer }

export interface CallBounds {
  /** Calls of a connection at once. */
  readonly maxCalls: number
  readonly perConnection: UnfinishedBounds
  readonly inAll: UnfinishedBounds
  /** How long a call may take, from its head until its client has read the answer. */
  readonly withinMs: number
}

/** Envoy sends a question whole, and asks for many callers on each of its few connections. */
export const DEFAULT_CALL_BOUNDS: CallBounds = {
  maxCalls: 1_024,
  perConnection: { calls: 1_024, bytes: 4 * 1024 * 1024 },
  inAll: { calls: 4_096, bytes: 32 * 1024 * 1024 },
  withinMs: 10_000,
}

export interface CallServer {
  /** Takes a connection. */
  accept(socket: Socket): void
  /** Finishes calls in progress, and cuts off whoever is still connected after the time. */
  stop(withinMs: number): Promise<void>
}

interface Connection {
  readonly unfinished: UnfinishedCalls
  /** When it last had a call, and when the ping that is unanswered was sent. */
  activeAtMs: number
  calls: number
  pingedAtMs: number
  isPinged: boolean
}

const MAX_MESSAGE_BYTES = 256 * 1024
const MAX_HEADER_BYTES = 16 * 1024
const SWEEP_MS = 1_000
const HANDSHAKE_MS = 10_000
/** Envoy reconnects when it has something to ask again. */
const MAX_IDLE_MS = 300_000
/** A peer that does not answer a ping is gone, or never spoke HTTP/2. */
const PING_AFTER_MS = 30_000
const PING_ANSWER_WITHIN_MS = 10_000
const HEAD = { ':status': 200, 'content-type': 'application/grpc+proto', 'grpc-accept-encoding': ENCODINGS }
const DONE = { 'grpc-status': String(STATUS.ok) }

/** `methods` are by their path; `tls` null means plain HTTP/2. */
export function createCallServer(
  methods: ReadonlyMap<string, Method>,
  tls: SecureServerOptions | null,
  bounds: CallBounds,
): CallServer {
  const connections = new Map<Http2Session, Connection>()
  const inAll = new UnfinishedCalls(bounds.inAll)
  /** By stream, when its call began, the oldest first. Without those that may go on. */
  const begun = new Map<ServerHttp2Stream, number>()
  const server = http2Server(tls, bounds)

  server.on('session', session => {
    const nowMs = performance.now()
    const unfinished = new UnfinishedCalls(bounds.perConnection)
    connections.set(session, { unfinished, activeAtMs: nowMs, calls: 0, pingedAtMs: nowMs, isPinged: false })
    session.on('error', () => session.destroy())
    session.once('close', () => connections.delete(session))
  })
  server.on('sessionError', (_error, session) => session.destroy())
  server.on('stream', (stream, headers) => {
    // A client that breaks off gets no answer.
    stream.on('error', () => {})
    const connection = stream.session === undefined ? undefined : connections.get(stream.session)
    if (connection === undefined) return stream.close(constants.NGHTTP2_REFUSED_STREAM)
    begun.set(stream, performance.now())
    connection.calls++
    stream.once('close', () => {
      begun.delete(stream)
      connection.calls--
      connection.activeAtMs = performance.now()
    })
    const rejected = rejectedStatus(headers)
    if (rejected !== null) return respond(stream, { ':status': rejected }, { endStream: true })
    const method = methods.get(headers[':path'] ?? '')
    if (method === undefined)
      fail(stream, new CallError(STATUS.unimplemented, 'path: expected a method here'))
    else readMessage(stream, headers, connection, message => void answer(stream, method, message))
  })

  /** Reads the message of a call and passes it on; fails the call if there is none. */
  function readMessage(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    { unfinished }: Connection,
    then: (message: Buffer) => void,
  ): void {
    const lists = [unfinished, inAll]
    const call: Unfinished = {
      giveUp: () => end(new CallError(STATUS.resourceExhausted, 'message: expected all of it at once')),
    }
    const reader = new MessageReader(MAX_MESSAGE_BYTES, bytes => {
      for (const list of lists) list.reserve(call, bytes)
    })
    let isOver = false
    function end(error: CallError | null): void {
      if (isOver) return
      isOver = true
      for (const list of lists) list.delete(call)
      // Later bytes are dropped, so that nothing holds them.
      stream.off('data', take).resume()
      if (error !== null) fail(stream, error)
    }
    function take(chunk: Buffer): void {
      try {
        const message = reader.take(chunk)
        if (message === null || isOver) return
        end(null)
        const encoding = headers['grpc-encoding'] as string | undefined
        then(reader.isCompressed ? unpack(message, encoding, MAX_MESSAGE_BYTES) : message)
      } catch (error) {
        isOver ? fail(stream, error) : end(error as CallError)
      }
    }
    for (const list of lists) list.add(call)
    stream.on('data', take)
    stream.once('end', () => end(new CallError(STATUS.invalidArgument, 'message: expected one; got less')))
    stream.once('close', () => end(null))
  }

  async function answer(stream: ServerHttp2Stream, method: Method, message: Buffer): Promise<void> {
    try {
      if ('answer' in method) return send(stream, await method.answer(message))
      method.stream(message, repliesTo(stream))
      // It is no longer expected to end.
      begun.delete(stream)
    } catch (error) {
      fail(stream, error)
    }
  }

  const sweep = setInterval(() => {
    const nowMs = performance.now()
    for (const [stream, atMs] of begun) {
      if (nowMs - atMs < bounds.withinMs) break
      stream.close(constants.NGHTTP2_CANCEL)
    }
    for (const [session, connection] of connections) look(session, connection, nowMs)
  }, SWEEP_MS)
  sweep.unref()

  return {
    accept: socket => void server.emit('connection', socket),
    async stop(withinMs) {
      const closed = [...connections.keys()].map(
        session => new Promise<void>(resolve => session.once('close', resolve)),
      )
      for (const session of connections.keys()) session.close()
      const force = setTimeout(() => {
        for (const session of connections.keys()) session.destroy()
      }, withinMs)
      await Promise.all(closed)
      clearTimeout(force)
      clearInterval(sweep)
    },
  }
}

function http2Server(
  tls: SecureServerOptions | null,
  { maxCalls }: CallBounds,
): Http2Server | Http2SecureServer {
  const options: ServerOptions = {
    settings: { maxConcurrentStreams: maxCalls, maxHeaderListSize: MAX_HEADER_BYTES, enablePush: false },
    maxSessionInvalidFrames: 100,
  }
  if (tls === null) return createServer(options)
  const server = createSecureServer({ ...options, ...tls, handshakeTimeout: HANDSHAKE_MS })
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('secureConnection', socket => socket.on('error', () => socket.destroy()))
  return server
}

/** Pings a connection, and closes one that is gone or idle. */
function look(session: Http2Session, connection: Connection, nowMs: number): void {
  const { calls, activeAtMs, isPinged, pingedAtMs } = connection
  const sinceMs = nowMs - pingedAtMs
  if (isPinged) {
    if (sinceMs > PING_ANSWER_WITHIN_MS) session.destroy()
  } else if (calls === 0 && nowMs - activeAtMs > MAX_IDLE_MS) {
    if (!session.closed) session.close()
  } else if (sinceMs > PING_AFTER_MS && !session.closed && !session.destroyed) {
    connection.pingedAtMs = nowMs
    connection.isPinged = session.ping(error => {
      if (error === null) connection.isPinged = false
    })
  }
}

/** Returns the status of HTTP for what is no call; null if it is one. */
function rejectedStatus(headers: IncomingHttpHeaders): number | null {
  if (headers[':method'] !== 'POST') return constants.HTTP_STATUS_METHOD_NOT_ALLOWED
  const isGrpc = /^application\/grpc(?:[+;]|$)/.test(headers['content-type'] ?? '')
  return isGrpc ? null : constants.HTTP_STATUS_UNSUPPORTED_MEDIA_TYPE
}

function send(stream: ServerHttp2Stream, message: Buffer): void {
  begin(stream)
  if (!stream.closed) stream.end(framed(message))
}

function begin(stream: ServerHttp2Stream): void {
  stream.once('wantTrailers', () => {
    if (!stream.closed) stream.sendTrailers(DONE)
  })
  respond(stream, HEAD, { waitForTrailers: true })
}

/** Ends a call with an error; anything but a `CallError` is a fault, of which clients learn nothing. */
function fail(stream: ServerHttp2Stream, error: unknown): void {
  const { status, message } =
    error instanceof CallError ? error : { status: STATUS.internal, message: 'the call failed' }
  const head = { ...HEAD, 'grpc-status': String(status), 'grpc-message': escaped(message) }
  respond(stream, head, { endStream: true })
}

/** Does nothing for a call that has been answered, or whose client has gone. */
function respond(
  stream: ServerHttp2Stream,
  head: OutgoingHttpHeaders,
  options: ServerStreamResponseOptions,
): void {
  if (!stream.destroyed && !stream.closed && !stream.headersSent) stream.respond(head, options)
}

function repliesTo(stream: ServerHttp2Stream): Replies {
  return {
    connection: stream.session ?? stream,
    send(message) {
      if (!stream.headersSent) begin(stream)
      if (!stream.closed) stream.write(framed(message))
    },
    end: () => void stream.end(),
    onClose: listener => void stream.once('close', listener),
  }
}

function framed(message: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(message.length + 5)
  bytes[0] = 0
  bytes.writeUInt32BE(message.length, 1)
  message.copy(bytes, 5)
  return bytes
}

/** Percent-encodes the bytes that a header cannot carry, as gRPC says. */
function escaped(details: string): string {
  const bytes = Buffer.from(details).toString('latin1')
  return bytes.replace(/[^ -$&-~]/g, byte => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
