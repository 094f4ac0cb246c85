import { drain } from 'headgate/internal'
import type { Dispatcher } from 'undici'
import { isGone, isHttp2, writeHead } from '../http/write-head.js'
import { type AnswerHead, responseHeaders } from './end-to-end-headers.js'
import type { Cause, Exchange } from './forward.js'
import { rejectAnswer } from './reject-answer.js'

/** Callbacks for the progress of a request. */
export interface Progress {
  /** There is a connection, and the request is being sent on it. */
  onConnect(): void
  /** The head of an answer that can be passed on has arrived. */
  onAnswer(status: number): void
  /** It has ended: answered, or failed with a cause. Called once. */
  onEnd(cause: Cause | null): void
}

const BODILESS = [204, 304]
const LENGTH_MISMATCH = 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'
/** Above this, copying a body costs more than writing it separately from its head. */
const MOST_HELD_BYTES = 8_192

/** An upstream's answer that two clients could read in two ways. */
class UnsendableError extends Error {
  readonly code = 'UNSENDABLE'
}

/**
 * Writes an upstream's answer to the client, no faster than the client reads. A client that leaves ends the request to
 * the upstream; an answer that breaks off breaks the client's connection.
 *
 * Most answers are small and arrive at once. Their body is held until the upstream's bytes have been read, and is sent
 * in one piece with the head; what has not ended by then is passed on as it comes.
 */
export class AnswerRelay implements Dispatcher.DispatchHandler {
  private abort: ((cause?: Error) => void) | null = null
  private resume: (() => void) | null = null
  private held: Buffer | null = null
  private isFlowing = false
  private isClientBehind = false
  private isBodiless = false
  private isOver = false

  constructor(
    private readonly exchange: Exchange,
    private readonly progress: Progress,
  ) {
    exchange.res.on('close', this.onClose)
  }

  // Also before there is a connection: then it is given up as soon as there is one.
  private readonly onClose = () => this.abort?.(new Error('the client has left'))

  onConnect(abort: (cause?: Error) => void): void {
    if (isGone(this.exchange.res)) return void abort(new Error('the client has left'))
    this.abort = abort
    this.progress.onConnect()
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void, reason: string): boolean {
    if (status >= 100 && status < 200) return true
    const { res, admitted } = this.exchange
    this.isBodiless = BODILESS.includes(status)
    this.resume = resume
    const answer: AnswerHead = { status, reason, rawHeaders: raw.map(text => text.toString('latin1')) }
    const objection = rejectAnswer(answer)
    if (objection !== null) throw new UnsendableError(objection)
    // We have answered in the meantime, because the rest of the body came too slowly.
    if (res.headersSent) throw new Error('answered already')
    this.progress.onAnswer(status)
    admitted.tokens?.answered(answer)
    writeHead(res, status, reason, responseHeaders(answer, admitted.headers))
    process.nextTick(flow, this)
    return true
  }

  onData(chunk: Buffer): boolean {
    const { res, admitted } = this.exchange
    const isRead = admitted.tokens?.write(chunk, this.goOn) ?? true
    if (!this.isFlowing && this.held === null && chunk.length <= MOST_HELD_BYTES) {
      this.held = chunk
      return isRead
    }
    this.flow()
    if (res.write(chunk)) return isRead
    if (!this.isClientBehind) res.once('drain', this.onDrain)
    this.isClientBehind = true
    return false
  }

  private readonly onDrain = () => {
    this.isClientBehind = false
    this.goOn()
  }

  /** When both the client and whoever reads beside it have caught up. */
  private readonly goOn = () => {
    if (!this.isClientBehind && this.exchange.admitted.tokens?.isBehind !== true) this.resume?.()
  }

  onComplete(trailers: readonly (string | Buffer)[] | null): void {
    const { req, res, admitted } = this.exchange
    admitted.tokens?.complete()
    if (trailers !== null && trailers.length > 0)
      res.addTrailers(isHttp2(res) ? Object.fromEntries(pairs(trailers)) : pairs(trailers))
    // Node joins the head only with text; a buffer would be a second write.
    if (this.held === null) res.end()
    else res.end(this.held.toString('latin1'), 'latin1')
    this.held = null
    // Answered before it had the whole body. The rest is useless.
    if (!req.complete && !req.destroyed)
      drain(req, () => (isHttp2(res) ? req.destroy() : req.socket.destroySoon()))
    this.end(null)
  }

  onError(cause: Cause): void {
    const { res } = this.exchange
    // A length without a body is the length a body would have had; undici reports a mismatch.
    if (this.isBodiless && res.headersSent && cause.code === LENGTH_MISMATCH)
      return void this.onComplete(null)
    if (res.headersSent && !res.writableEnded) res.destroy()
    this.end(cause)
  }

  /**
   * Passes on what has come so far, and from now on what comes: a client may be waiting for the head of a stream.
   */
  flow(): void {
    if (this.isFlowing || this.isOver) return
    const { res } = this.exchange
    this.isFlowing = true
    if (this.held !== null) res.write(this.held)
    else if (!isHttp2(res)) res.flushHeaders()
    this.held = null
  }

  private end(cause: Cause | null): void {
    if (this.isOver) return
    this.isOver = true
    const { res } = this.exchange
    res.off('close', this.onClose)
    res.off('drain', this.onDrain)
    this.progress.onEnd(cause)
  }
}

function flow(relay: AnswerRelay): void {
  relay.flow()
}

function pairs(list: readonly (string | Buffer)[]): [string, string][] {
  const found: [string, string][] = []
  for (let index = 0; index + 1 < list.length; index += 2) {
    found.push([String(list[index]), String(list[index + 1])])
  }
  return found
}
