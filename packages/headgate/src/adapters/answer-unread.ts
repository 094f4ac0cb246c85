/**
 * Answers of ours to a client that may still be sending a body nobody wants. Closing at once would reset the connection,
 * and the client could lose the answer it has not read yet.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'

/** The bytes that are read of an unwanted body, so that its client gets to read the answer. */
export const MAX_DRAINED_BYTES = 64 * 1024
const MAX_DRAIN_MS = 1_000

/**
 * Ends a response whatever is left of its request: the rest of a small body is read past, and of any other at most 64 KB,
 * after which the connection is closed. `writeHead` is told whether it will be, and has to say so.
 */
export function endUnread(
  req: IncomingMessage,
  res: ServerResponse,
  body: Buffer,
  writeHead: (closes: boolean) => void,
): void {
  const isHead = req.method === 'HEAD'
  const isLong = hasLongBody(req)
  writeHead(isLong)
  if (!isLong) {
    res.end(isHead ? undefined : body)
    return
  }
  // The answer goes out whole, and only its end, which closes, waits for the client to stop sending.
  if (isHead) res.flushHeaders()
  else res.write(body)
  drain(req, () => res.end())
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
