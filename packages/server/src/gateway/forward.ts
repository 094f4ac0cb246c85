import { type Agent, type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import type { HeaderField } from 'headgate'
import type { Upstream } from 'headgate/config'
import { problemAnswer } from '../http/problem.js'
import { drain, sendAnswer } from '../http/send-answer.js'
import { hasBody, requestHeaders, responseHeaders } from './end-to-end-headers.js'

/** One request on its way through the gateway. */
export interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Who it comes from, as the upstream is told. */
  readonly forwardedFor: string
  /** What the decision adds to the response. */
  readonly headers: readonly HeaderField[]
}

/** The way to the one upstream there is. */
export interface Route {
  readonly upstream: Upstream
  readonly agent: Agent
  /** How long the upstream may be silent before it has begun to answer. */
  readonly timeoutMs: number
  /** Told when the upstream did not answer; the client gets no more than a status. */
  onFailure(reason: string): void
}

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

/**
 * Sends the request to the upstream and its answer to the client, both as streams. Redirects are answers like any
 * other. The upstream failing before it answers is 502 or 504; after that the client's connection is cut, since a
 * shorter body must not look like a whole one.
 */
export function forward(exchange: Exchange, route: Route): void {
  send(exchange, route, {
    mayRetry: !hasBody(exchange.req) && SAFE_METHODS.includes(exchange.req.method ?? ''),
  })
}

function send(exchange: Exchange, route: Route, { mayRetry }: { mayRetry: boolean }): void {
  const { req, res } = exchange
  const { upstream } = route
  let timedOut = false
  let cause: NodeJS.ErrnoException = new Error('no answer')
  const outgoing = request({
    host: upstream.hostname,
    port: upstream.port,
    agent: route.agent,
    method: req.method,
    path: req.url,
    headers: requestHeaders(req, upstream.authority, exchange.forwardedFor),
    setHost: false,
    timeout: route.timeoutMs,
  })
  const abandon = () => outgoing.destroy()
  res.once('close', abandon)
  outgoing.once('timeout', () => {
    timedOut = true
    outgoing.destroy(new Error(`no answer within ${route.timeoutMs} ms`))
  })
  outgoing.once('response', incoming => {
    // An answer that has begun may pause as long as it likes: it may be a stream of events.
    outgoing.setTimeout(0)
    relay(incoming, outgoing, exchange)
  })
  outgoing.on('error', error => {
    cause = error
  })
  // Whatever happens, this comes last; an upstream that switches protocols, for one, causes no error at all.
  outgoing.once('close', () => {
    res.off('close', abandon)
    req.unpipe(outgoing)
    if (res.headersSent || res.destroyed) return
    // The upstream closed a connection we had kept, just as we used it. Such a request may be asked twice.
    if (mayRetry && outgoing.reusedSocket && !timedOut) send(exchange, route, { mayRetry: false })
    else fail(exchange, route, { cause, timedOut })
  })
  if (hasBody(req)) req.pipe(outgoing)
  else outgoing.end()
}

function relay(incoming: IncomingMessage, outgoing: ClientRequest, { req, res, headers }: Exchange): void {
  try {
    const { statusCode = 502, statusMessage } = incoming
    res.writeHead(statusCode, statusMessage, responseHeaders(incoming, headers))
  } catch {
    // A status or a header that Node parses but does not send.
    outgoing.destroy(new Error('an answer that is not valid HTTP'))
    return
  }
  pipeline(incoming, res, () => {
    if (req.complete || req.destroyed) return
    // Answered before it had the whole body. The rest is of no use to anybody.
    req.unpipe(outgoing)
    drain(req, () => req.socket.destroySoon())
  })
}

function fail(
  exchange: Exchange,
  route: Route,
  { cause, timedOut }: { cause: NodeJS.ErrnoException; timedOut: boolean },
): void {
  const status = timedOut ? 504 : 502
  const what = timedOut ? 'did not answer in time' : 'could not be reached'
  route.onFailure(
    `${status}: upstream http://${route.upstream.authority} ${what} (${cause.code ?? cause.message})`,
  )
  const detail = `The upstream ${what}.`
  sendAnswer(exchange.req, exchange.res, problemAnswer({ status, detail, headers: exchange.headers }))
}
