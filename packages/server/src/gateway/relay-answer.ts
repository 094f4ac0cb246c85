import type { Dispatcher } from 'undici'
import { drain } from '../http/drain.js'
import { isGone, isHttp2, writeHead } from '../http/write-head.js'
import { type AnswerHead, responseHeaders } from './end-to-end-headers.js'
import type { Cause, Exchange } from './forward.js'
import { refuseAnswer } from './refuse-answer.js'

/** Told how far the request has come. */
export interface Progress {
  /** There is a connection, and the request is being sent on it. */
  onConnect(): void
  /** The head of an answer that can be passed on has come. */
  onAnswer(status: number): void
  /** It is over: answered, or not for a cause. Called once. */
  onEnd(cause: Cause | null): void
}

const BODILESS = [204, 304]
const LENGTH_MISMATCH = 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'

/** An answer of the upstream that two clients could read in two ways. */
class UnsendableError extends Error {
  readonly code = 'UNSENDABLE'
}

/**
 * Writes what the upstream answers to the client, no faster than that reads. A client that leaves ends the request to
 * the upstream; an answer that breaks off breaks the client's connection.
 */
export function relayAnswer({ req, res, headers }: Exchange, progress: Progress): Dispatcher.DispatchHandler {
  let abort: ((cause?: Error) => void) | null = null
  let isBodiless = false
  let isOver = false

  // Also while there is no connection yet: then it is given up as soon as there is one.
  const leave = () => abort?.(new Error('the client has left'))
  const onDrain = () => resume?.()
  let resume: (() => void) | null = null
  res.once('close', leave)
  const end = (cause: Cause | null) => {
    if (isOver) return
    isOver = true
    res.off('close', leave).off('drain', onDrain)
    progress.onEnd(cause)
  }

  return {
    onConnect(given) {
      if (isGone(res)) return given(new Error('the client has left'))
      abort = given
      progress.onConnect()
    },
    onHeaders(status, rawHeaders, given, reason) {
      if (status >= 100 && status < 200) return true
      isBodiless = BODILESS.includes(status)
      resume = given
      const answer: AnswerHead = {
        status,
        reason,
        rawHeaders: rawHeaders.map(text => text.toString('latin1')),
      }
      const objection = refuseAnswer(answer)
      if (objection !== null) throw new UnsendableError(objection)
      // Answered by ourselves meanwhile, because the rest of the body came too slowly.
      if (res.headersSent) throw new Error('answered already')
      progress.onAnswer(status)
      writeHead(res, status, reason, responseHeaders(answer, headers))
      res.on('drain', onDrain)
      return true
    },
    onData(chunk) {
      return res.write(chunk)
    },
    onComplete: complete,
    onError(cause) {
      // A length beside no body is what a body would have had; undici misses it.
      if (isBodiless && res.headersSent && (cause as Cause).code === LENGTH_MISMATCH) return complete(null)
      if (res.headersSent && !res.writableEnded) res.destroy()
      end(cause)
    },
  }

  function complete(trailers: readonly (string | Buffer)[] | null): void {
    if (trailers !== null && trailers.length > 0)
      res.addTrailers(isHttp2(res) ? Object.fromEntries(pairs(trailers)) : pairs(trailers))
    res.end()
    // Answered before it had the whole body. The rest is of no use to anybody.
    if (!req.complete && !req.destroyed)
      drain(req, () => (isHttp2(res) ? req.destroy() : req.socket.destroySoon()))
    end(null)
  }
}

function pairs(list: readonly (string | Buffer)[]): [string, string][] {
  const found: [string, string][] = []
  for (let index = 0; index + 1 < list.length; index += 2) {
    found.push([String(list[index]), String(list[index + 1])])
  }
  return found
}
