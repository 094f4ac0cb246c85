import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { endUnread } from 'headgate/node-http'
import type { HttpAnswer } from './problem.js'
import { isGone, isHttp2, writeHead } from './write-head.js'

const NO_CONTENT = 204

/** Sends an answer of our own, whatever the client still sends: the request's body is not wanted. */
export function sendAnswer(req: IncomingMessage, res: ServerResponse, answer: HttpAnswer): void {
  if (isGone(res) || res.headersSent) return void answer.onUnsent?.()
  if (answer.stream !== undefined) {
    res.writeHead(answer.status, answer.headers.flat())
    answer.stream(res)
    return
  }
  // As text, which Node writes together with the head; a buffer would be a second write.
  const { body } = answer
  const headers = [...answer.headers.flat()]
  // A 204 has neither a body nor a length (RFC 9110, 8.6).
  if (answer.status !== NO_CONTENT) headers.push('Content-Length', String(Buffer.byteLength(body)))
  // Without an explicit reason, Node would send the one of the last attempt.
  const reason = STATUS_CODES[answer.status] ?? ''
  endUnread(req, res, body, closes =>
    writeHead(res, answer.status, reason, closes ? [...headers, 'Connection', 'close'] : headers),
  )
  // In HTTP/2 only the stream ends, not the connection.
  if (isHttp2(res)) req.resume()
}
