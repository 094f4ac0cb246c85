/**
 * Answers a client that may still be sending an unwanted body. Closing at once would reset the connection, and the
 * client could lose the answer before reading it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'

/** How much of an unwanted body is read, so that its client gets to read the answer. */
export const MAX_DRAINED_BYTES = 64 * 1024
const MAX_DRAIN_MS = 1_000

/**
 * Ends a response whatever is left of its request: the rest of a small body is read and discarded; of a larger one
 * at most 64 KB, after which the connection is closed. `writeHead` is told whether it will be, and must announce
 * it.
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
