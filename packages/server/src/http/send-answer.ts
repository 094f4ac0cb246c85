import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Answer } from './problem.js'

/** What may be read of a body that nobody wants, so that the client gets to read our answer. */
const MAX_DRAINED_BYTES = 64 * 1024
const MAX_DRAIN_MS = 1_000

/**
 * Sends an answer of our own. The request's body is not wanted: what is left of a small one is read past, and of
 * any other at most 64 KB, after which the connection is closed.
 */
export function sendAnswer(req: IncomingMessage, res: ServerResponse, answer: Answer): void {
  if (res.destroyed) return
  const body = Buffer.from(answer.body)
  const headers = answer.headers.flat()
  headers.push('Content-Length', String(body.length))
  if (req.complete || hasSmallBody(req)) {
    res.writeHead(answer.status, headers)
    res.end(req.method === 'HEAD' ? undefined : body)
    return
  }
  // Closing at once would reset the connection, and the client could lose the answer it has not read yet. So the
  // answer goes out whole, and only its end, which closes, waits for the client to stop sending.
  res.writeHead(answer.status, [...headers, 'Connection', 'close'])
  if (req.method === 'HEAD') res.flushHeaders()
  else res.write(body)
  drain(req, () => res.end())
}

/** Reads past what is left of the body: to its end, or 64 KB, or a second. */
export function drain(req: IncomingMessage, done: () => void): void {
  let left = MAX_DRAINED_BYTES
  const finish = () => {
    clearTimeout(timer)
    req.off('data', count).off('end', finish).off('close', finish)
    done()
  }
  const count = (chunk: Buffer) => {
    left -= chunk.length
    if (left <= 0) {
      req.pause()
      finish()
    }
  }
  const timer = setTimeout(finish, MAX_DRAIN_MS)
  req.on('data', count).on('end', finish).on('close', finish)
}

/** A client that waits for 100 Continue may never send the body it announced, so its end cannot be waited for. */
function hasSmallBody(req: IncomingMessage): boolean {
  if (req.headers.expect !== undefined) return false
  const length = req.headers['content-length']
  return length !== undefined && Number(length) <= MAX_DRAINED_BYTES
}
