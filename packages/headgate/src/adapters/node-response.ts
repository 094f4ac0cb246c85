/** Writes outcomes to a response of Node's own server, below whichever framework. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { HeaderField } from '../decision/header-field.js'
import type { Eventually } from '../store/store.js'
import { isPromise } from '../subject/source.js'
import type { Outcome } from './enforce.js'
import type { Refusal } from './refusal.js'
import { endOnClose } from './response-end.js'

/** The bytes to read of a body that nobody wants, so that the client gets to read our answer. */
const MAX_DRAINED_BYTES = 64 * 1024
const MAX_DRAIN_MS = 1_000

/** Goes on with a request that passes, at once if that is known, and refuses any other. */
export function settle(
  outcome: Eventually<Outcome>,
  req: IncomingMessage,
  res: ServerResponse,
  next: () => void,
): void {
  if (isPromise(outcome)) outcome.then(known => settle(known, req, res, next))
  else if (outcome.allowed) {
    addHeaders(res, outcome.headers)
    endOnClose(outcome.ended, res)
    next()
  } else sendRefusal(req, res, outcome)
}

/** Nothing can be added to a response that somebody else has begun. */
function addHeaders(res: ServerResponse, headers: readonly HeaderField[]): void {
  if (res.headersSent) return
  for (const [name, value] of headers) res.setHeader(name, value)
}

/**
 * Answers a request that is refused, beside whatever headers others have set. Its body is not wanted: what is left of a
 * small one is read past, and of any other at most 64 KB, after which the connection is closed.
 */
export function sendRefusal(
  req: IncomingMessage,
  res: ServerResponse,
  { status, headers, body }: Refusal,
): void {
  if (res.headersSent) {
    cutOff(res)
    return
  }
  const text = Buffer.from(body)
  const isLong = hasLongBody(req)
  addHeaders(res, headers)
  res.setHeader('Content-Length', text.length)
  if (isLong) res.setHeader('Connection', 'close')
  res.writeHead(status)
  const content = req.method === 'HEAD' ? '' : text
  if (!isLong) {
    res.end(content)
    return
  }
  // Closing at once would reset the connection, and the client could lose the answer it has not read yet. So the
  // answer goes out whole, and only its end, which closes, waits for the client to stop sending.
  res.write(content)
  drain(req, () => res.end())
}

/** Cuts off a response that somebody else began and nobody will end: half an answer must not look like a whole one. */
function cutOff(res: ServerResponse): void {
  if (!res.writableEnded) res.destroy()
}

/**
 * Whether more of a body may come than is worth reading past. A client that waits for 100 Continue may never send what
 * it announced, so its end cannot be waited for. HTTP/2 ends a stream without its connection.
 */
export function hasLongBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length']
  if (length === undefined && req.headers['transfer-encoding'] === undefined) return false
  if (req.complete || req.httpVersionMajor > 1) return false
  return length === undefined || Number(length) > MAX_DRAINED_BYTES || req.headers.expect !== undefined
}

/** Reads past what a client still sends: to its end, or 64 KB, or a second. */
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
