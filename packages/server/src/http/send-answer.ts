import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { drain, MAX_DRAINED_BYTES } from './drain.js'
import type { HttpAnswer } from './problem.js'
import { isGone, isHttp2, writeHead } from './write-head.js'

/**
 * Sends an answer of our own. The request's body is not wanted: what is left of a small one is read past, and of
 * any other at most 64 KB, after which the connection is closed.
 */
export function sendAnswer(req: IncomingMessage, res: ServerResponse, answer: HttpAnswer): void {
  if (isGone(res) || res.headersSent) return
  if (answer.stream !== undefined) {
    res.writeHead(answer.status, answer.headers.flat())
    answer.stream(res)
    return
  }
  const body = Buffer.from(answer.body)
  const headers = answer.headers.flat()
  headers.push('Content-Length', String(body.length))
  // Without a reason of ours, Node would send the one that was tried last.
  const reason = STATUS_CODES[answer.status] ?? ''
  if (req.complete || hasSmallBody(req) || isHttp2(res)) {
    writeHead(res, answer.status, reason, headers)
    res.end(req.method === 'HEAD' ? undefined : body)
    // Of HTTP/2 the stream alone is over, and not the connection.
    if (isHttp2(res)) req.resume()
    return
  }
  // Closing at once would reset the connection, and the client could lose the answer it has not read yet. So the
  // answer goes out whole, and only its end, which closes, waits for the client to stop sending.
  res.writeHead(answer.status, reason, [...headers, 'Connection', 'close'])
  if (req.method === 'HEAD') res.flushHeaders()
  else res.write(body)
  drain(req, () => res.end())
}

/** A client that waits for 100 Continue may never send the body it announced, so its end cannot be waited for. */
function hasSmallBody(req: IncomingMessage): boolean {
  if (req.headers.expect !== undefined) return false
  const length = req.headers['content-length']
  return length !== undefined && Number(length) <= MAX_DRAINED_BYTES
}
