/** Writes outcomes to a response of Node's own server, below any framework. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HeaderField } from '../decision/header-field.js'
import type { Eventually } from '../store/store.js'
import { isPromise } from '../subject/source.js'
import { endUnread } from './answer-unread.js'
import type { Outcome } from './enforce.js'
import type { Refusal } from './refusal.js'
import { endOnClose } from './response-end.js'

/** Continues a request that passes, synchronously if possible, and refuses any other. */
export function applyOutcome(
  outcome: Eventually<Outcome>,
  req: IncomingMessage,
  res: ServerResponse,
  next: () => void,
): void {
  if (isPromise(outcome)) outcome.then(known => applyOutcome(known, req, res, next))
  else if (outcome.allowed) {
    addHeaders(res, outcome.headers)
    endOnClose(outcome.ended, res)
    next()
  } else sendRefusal(req, res, outcome)
}

/** Headers cannot be added to a response that has already begun. */
function addHeaders(res: ServerResponse, headers: readonly HeaderField[]): void {
  if (res.headersSent) return
  for (const [name, value] of headers) res.setHeader(name, value)
}

/**
 * Answers a refused request, keeping headers that others have set. The rest of a small body is read and discarded;
 * of a larger one at most 64 KB, after which the connection is closed.
 */
export function sendRefusal(
  req: IncomingMessage,
  res: ServerResponse,
  { status, headers, body }: Pick<Refusal, 'status' | 'headers' | 'body'>,
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
