/** What every adapter on Node's own server shares: reading its requests, and writing outcomes to its responses. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import type { Decision } from '../decision/decision.js'
import type { HeaderField } from '../decision/headers.js'
import type { MaybePromise } from '../store/store.js'
import type { FrameworkTrust } from '../subject/client-address.js'
import type { HttpRequest } from '../subject/http-request.js'
import { isPromise } from '../subject/sources.js'
import type { Outcome } from './enforce.js'
import type { Rejection } from './rejection.js'
import { endOnClose } from './response-end.js'

/** Shows a request of Node's own server to the core, below any framework. */
export class NodeRequest implements HttpRequest {
  constructor(private readonly req: IncomingMessage) {}

  /** As the client wrote it: frameworks cut off the mount path of a router. */
  get url(): string {
    return this.req.url ?? ''
  }

  get route(): string | undefined {
    return undefined
  }

  get trust(): FrameworkTrust | undefined {
    return undefined
  }

  get method(): string {
    return this.req.method ?? ''
  }

  get peer(): string | undefined {
    return this.req.socket?.remoteAddress
  }

  get signal(): AbortSignal | undefined {
    return leavingSignal(this.req)
  }

  header(name: string): string | undefined {
    const value = this.req.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
}

const leaving = new WeakMap<object, AbortSignal>()

/** Returns a signal that is aborted when the client of a request leaves. One connection has one, whatever it sends. */
export function leavingSignal(req: IncomingMessage): AbortSignal | undefined {
  // A stream of HTTP/2 ends without its connection.
  const way: Duplex | undefined = (req as { stream?: Duplex }).stream ?? req.socket
  if (typeof way?.once !== 'function') return undefined
  let signal = leaving.get(way)
  if (signal === undefined) {
    const controller = new AbortController()
    if (way.destroyed) controller.abort()
    else way.once('close', () => controller.abort())
    signal = controller.signal
    leaving.set(way, signal)
  }
  return signal
}

/** A request that has passed a limiter. */
export interface LimitedMessage extends IncomingMessage {
  /** The decision on it; absent if it is not limited. */
  rateLimit?: Decision
}

/** Converts a framework's route, which may be a list or an expression, to text. */
export function routeText(route: unknown): string | undefined {
  return route === undefined || route === null ? undefined : String(route)
}

/** Reads a setting of an app at its first request, when all of them are made. */
export function readOnce<App extends object, Setting>(read: (app: App) => Setting): (app: App) => Setting {
  const settings = new WeakMap<App, { readonly setting: Setting }>()
  return app => {
    let known = settings.get(app)
    if (known === undefined) {
      known = { setting: read(app) }
      settings.set(app, known)
    }
    return known.setting
  }
}

/** Continues a request that passes, synchronously if possible, and rejects any other. */
export function applyOutcome(
  outcome: MaybePromise<Outcome>,
  req: IncomingMessage,
  res: ServerResponse,
  next: () => void,
): void {
  if (isPromise(outcome)) {
    outcome.then(known => applyOutcome(known, req, res, next))
    return
  }
  if (outcome.decision !== null) (req as LimitedMessage).rateLimit = outcome.decision
  if (outcome.allowed) {
    addHeaders(res, outcome.headers)
    if (outcome.ended !== null) endOnClose(outcome.ended, res)
    next()
  } else sendRejection(req, res, outcome)
}

/** Headers cannot be added to a response that has already begun. */
function addHeaders(res: ServerResponse, headers: readonly HeaderField[]): void {
  if (headers.length === 0 || res.headersSent) return
  for (const field of headers) res.setHeader(field[0], field[1])
}

const lowerCase = new Map<string, string>()

/**
 * The name of a header for frameworks that write names in lower case: changing our few names for every response would
 * be a quarter of what headers cost.
 */
export function inLowerCase(name: string): string {
  let known = lowerCase.get(name)
  if (known === undefined) {
    known = name.toLowerCase()
    lowerCase.set(name, known)
  }
  return known
}

/**
 * Answers a rejected request, keeping headers that others have set. The rest of a small body is read and discarded;
 * of a larger one at most 64 KB, after which the connection is closed.
 */
export function sendRejection(
  req: IncomingMessage,
  res: ServerResponse,
  { status, headers, body }: Pick<Rejection, 'status' | 'headers' | 'body'>,
): void {
  if (res.headersSent) {
    cutOff(res)
    return
  }
  const text = Buffer.from(body)
  endUnread(req, res, text, closes => {
    addHeaders(res, headers)
    res.setHeader('Content-Length', text.length)
    if (closes) res.setHeader('Connection', 'close')
    res.writeHead(status)
  })
}

/** Aborts a response that somebody else began and nobody will end: half an answer must not look complete. */
function cutOff(res: ServerResponse): void {
  if (!res.writableEnded) res.destroy()
}

/** How much of an unwanted body is read, so that its client gets to read the answer. */
export const MAX_DRAINED_BYTES = 64 * 1024
const MAX_DRAIN_MS = 1_000

/**
 * Ends a response whatever is left of its request: the rest of a small body is read and discarded; of a larger one
 * at most 64 KB, after which the connection is closed: closing at once would reset it, and the client could lose the
 * answer before reading it. `writeHead` is told whether it will be closed, and must announce it.
 */
export function endUnread(
  req: IncomingMessage,
  res: ServerResponse,
  body: Buffer | string,
  writeHead: (closes: boolean) => void,
): void {
  const isHead = req.method === 'HEAD'
  const isLong = hasLongBody(req)
  writeHead(isLong)
  if (!isLong) {
    res.end(isHead ? undefined : body)
    return
  }
  // The answer is sent in full; only ending the response, which closes the connection, waits until the client stops
  // sending.
  if (isHead) res.flushHeaders()
  else writeAtOnce(res, body)
  drain(req, () => res.end())
}

/**
 * Node keeps what is written until the end of the turn, and drops it if what the client sent next cannot be parsed.
 */
function writeAtOnce(res: ServerResponse, body: Buffer | string): void {
  res.cork()
  res.write(body)
  res.uncork()
}

/**
 * Whether more of a body may come than is worth reading. A client that waits for 100 Continue may never send what
 * it announced, so its end cannot be awaited. HTTP/2 can end a stream without its connection.
 */
export function hasLongBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length']
  if (length === undefined && req.headers['transfer-encoding'] === undefined) return false
  if (req.complete || req.httpVersionMajor > 1) return false
  return length === undefined || Number(length) > MAX_DRAINED_BYTES || req.headers.expect !== undefined
}

/** Discards what a client still sends, until its end, 64 KB or one second. */
export function drain(source: Readable, done: () => void): void {
  let left = MAX_DRAINED_BYTES
  const finish = () => {
    clearTimeout(timer)
    source.off('data', count).off('end', finish).off('close', finish)
    done()
  }
  const count = (chunk: Buffer) => {
    left -= chunk.length
    if (left > 0) return
    source.pause()
    finish()
  }
  const timer = setTimeout(finish, MAX_DRAIN_MS)
  source.on('data', count).on('end', finish).on('close', finish)
}
