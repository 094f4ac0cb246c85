import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { problemAnswer } from '../http/problem.js'
import { isGone } from '../http/write-head.js'
import type { Admitted } from './admit.js'
import { hasBody, requestHeaders } from './end-to-end-headers.js'
import type { OwnAnswers, OwnRejection } from './own-answers.js'
import { AnswerRelay } from './relay-answer.js'
import { poolName, type UpstreamPool, type UpstreamServer } from './upstream-pool.js'

/** One request on its way through the gateway. */
export interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly admitted: Admitted
}

/** An attempt to have a request answered by an upstream. */
export interface UpstreamAttempt {
  /** Host and port of the upstream's first server, as in the policy file. */
  readonly upstream: string
  /** The status of the answer; null if none came. */
  readonly status: number | null
  /** Until the head of the answer arrived, or the attempt failed. */
  readonly seconds: number
}

/** What is told how requests fare at upstreams, and answers in their place. */
export interface Listeners {
  /** Called if the upstream did not answer; the client only gets a status. */
  onFailure(reason: string): void
  /** Called for every attempt, when the upstream has answered or failed. */
  onAttempt?: ((attempt: UpstreamAttempt) => void) | undefined
  readonly own: OwnAnswers
}

/** Why there is no answer, as undici and Node name it. */
export type Cause = Error & { readonly code?: string }

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']
/** The errors of a connection that the server closed while we wrote to it. */
const CLOSED = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']
/** Nothing was sent, so even a non-idempotent request may be sent elsewhere. */
const NOT_CONNECTED =
  /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_\w+|ERR_SSL_\w+|UNABLE_TO_\w+)$|CERT|SELF_SIGNED/
/** The upstream's answer cannot be passed on. */
const UNREADABLE = /^(?:HPE_\w+|UND_ERR_HEADERS_OVERFLOW|UNSENDABLE)$/
/** undici's errors for an unrequested answer, and for an unrequested switch of protocols. */
const NOT_ASKED_FOR = ['bad response', 'bad upgrade']
const MOST_TRIES = 3

/**
 * Sends the request to the upstream and its answer to the client, both as streams. Redirects are answers like any
 * other. If the upstream fails before it answers, the client gets 502 or 504; after that its connection is cut,
 * because a truncated body must not look complete.
 */
export function forward(exchange: Exchange, listeners: Listeners): void {
  send(exchange, listeners, [])
}

function send(exchange: Exchange, listeners: Listeners, tried: readonly UpstreamServer[]): void {
  const { req, res, admitted } = exchange
  const { pool, permit } = admitted
  // A repeated request goes to another server if there is one.
  const server = pool.choose(tried) ?? (tried[0] as UpstreamServer)
  const asked = [...tried, server]
  const body = hasBody(req) ? new PassThrough() : null
  const beganMs = performance.now()
  const attempted = (status: number | null) => {
    permit.answered(status)
    const seconds = (performance.now() - beganMs) / 1000
    listeners.onAttempt?.({ upstream: poolName(pool), status, seconds })
  }
  const relay = new AnswerRelay(exchange, {
    onConnect() {
      permit.sent()
      admitted.tokens?.sent()
      // Not earlier: what was read of it could not be sent to another server.
      if (body !== null) sendBody(req, admitted.begun, body)
    },
    onAnswer: attempted,
    onEnd(cause) {
      server.inFlight--
      if (body !== null) req.unpipe(body)
      if (cause === null) return server.health.succeeded()
      if (isGone(res) || res.headersSent) return
      server.health.failed(performance.now())
      attempted(null)
      if (mayAskAgain(req, pool, asked, cause)) send(exchange, listeners, asked)
      else fail(exchange, listeners, server, cause)
    },
  })
  server.inFlight++
  const host = pool.config.host === 'keep' ? admitted.host : server.upstream.authority
  server.connections.dispatch(
    {
      path: req.url as string,
      method: req.method as 'GET',
      headers: requestHeaders(req, host, admitted),
      body,
    },
    relay,
  )
}

/** Byte for byte: what has been read already, which is not kept for as long as the answer takes, then the rest. */
function sendBody(req: IncomingMessage, begun: Buffer[], body: PassThrough): void {
  for (const chunk of begun.splice(0)) body.write(chunk)
  if (req.readableEnded) body.end()
  else req.pipe(body)
}

function mayAskAgain(
  req: IncomingMessage,
  pool: UpstreamPool,
  asked: readonly UpstreamServer[],
  { code = '', message }: Cause,
): boolean {
  if (asked.length >= MOST_TRIES || NOT_ASKED_FOR.includes(message)) return false
  if (NOT_CONNECTED.test(code)) return pool.servers.some(server => !asked.includes(server))
  // The server closed a kept connection just as we used it. Such a request may be sent twice.
  return (
    asked.length === 1 && CLOSED.includes(code) && !hasBody(req) && SAFE_METHODS.includes(req.method ?? '')
  )
}

/** Returns the status for a missing answer, and the reason in words for the client and the log. */
export function explainFailure({ code = '', message }: Cause): {
  readonly status: number
  readonly reason: string
  readonly what: string
} {
  if (code === 'UND_ERR_HEADERS_TIMEOUT')
    return { status: 504, reason: 'upstream-timeout', what: 'did not answer in time' }
  if (UNREADABLE.test(code) || NOT_ASKED_FOR.includes(message)) {
    return { status: 502, reason: 'upstream-answer', what: 'gave an answer that cannot be passed on' }
  }
  return { status: 502, reason: 'upstream-unreachable', what: 'could not be reached' }
}

function fail(
  { req, res, admitted }: Exchange,
  { onFailure, own }: Listeners,
  { upstream }: UpstreamServer,
  cause: Cause,
): void {
  const { status, reason, what } = explainFailure(cause)
  const because = cause.code === undefined || cause.code === 'UNSENDABLE' ? cause.message : cause.code
  onFailure(`${status}: upstream ${upstream.origin} ${what} (${because})`)
  const rejection: OwnRejection = {
    status,
    reason,
    detail: `The upstream ${what}.`,
    headers: admitted.headers,
  }
  own.send(req, res, problemAnswer(rejection))
}
