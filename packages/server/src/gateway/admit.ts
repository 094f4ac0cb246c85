import type { IncomingMessage } from 'node:http'
import type { RuleLimiter } from 'headgate'
import type { Outcome } from 'headgate/adapter'
import { limitedAddress } from 'headgate/identify'
import type { Asking, Passed, Rejected } from 'headgate/internal'
import { type HeaderField, type MaybePromise, printable } from 'headgate/internal'
import type { Bounds } from '../http/bounds.js'
import { countInFlight } from '../http/count-in-flight.js'
import { httpRequest, requestIdOf, setRequestId } from '../http/http-request.js'
import { type HttpAnswer, problemAnswer } from '../http/problem.js'
import { throttledLog, type WriteLine } from '../log/write-line.js'
import type { Introduction } from './end-to-end-headers.js'
import { enforceRequests } from './enforce-requests.js'
import { createEnterUpstream, type UpstreamPermit, type UpstreamRejection } from './enter-upstream.js'
import { forwardedHeaders, type Origin, originOf, requestId } from './forwarded-headers.js'
import type { OwnRejection } from './own-answers.js'
import { denialFields, denialWords } from './quota-words.js'
import { readMaxTokens } from './read-max-tokens.js'
import { rejectRequest } from './reject-request.js'
import { kindOf } from './request-kind.js'
import type { Serving } from './serving.js'
import { type TokenListener, TokenReservation } from './token-reservation.js'
import type { UpstreamPool } from './upstream-pool.js'

export interface AdmitOptions {
  readonly limiter: RuleLimiter
  /** Returns the configuration in force. Called once per request, which is then served by it to its end. */
  serving(): Serving
  readonly bounds: Bounds
  readonly log: WriteLine
  /** Called for every request for which its upstream had no permit. */
  onNoPermit?: ((rejection: UpstreamRejection) => void) | undefined
  /** Told of the tokens of models. */
  readonly tokens?: TokenListener | undefined
}

/**
 * How to continue with a request. `leave` is called with the status of its response when it ends, and gives its
 * permits back.
 */
export type Admission = Admitted | NotAdmitted

/** What the access log says of a request beside its answer. */
interface Noted {
  /** The address of the client behind trusted proxies; null for the connection's own. */
  readonly client: string | null
  /** Of a denial. */
  readonly reference: string | null
}

export interface Admitted extends Introduction, Noted {
  readonly answer: null
  readonly pool: UpstreamPool
  /** Its permit at the upstream. */
  readonly permit: UpstreamPermit
  readonly id: string
  /** The host name the client asked for. */
  readonly host: string
  /** Headers of the response beside those of the upstream. */
  readonly headers: readonly HeaderField[]
  /** What has been read of the body and not yet sent. */
  readonly begun: Buffer[]
  /** The tokens it has reserved; null if none are limited. */
  readonly tokens: TokenReservation | null
  leave(status: number | null): void
}

export interface NotAdmitted extends Noted {
  readonly answer: HttpAnswer
  leave(status: number | null): void
}

const DENIAL_LINE_EVERY_MS = 5_000
const TOO_MANY_AT_ONCE: OwnRejection = {
  status: 429,
  reason: 'client-requests',
  detail: 'Too many requests of this client are in flight at once.',
  headers: [['Retry-After', '1']],
}
const NO_ROUTE: OwnRejection = {
  status: 404,
  reason: 'no-route',
  detail: 'No route is for this host and path.',
}

const CUT_OFF: OwnRejection = {
  status: 400,
  reason: 'body-cut-off',
  detail: 'The body ended before it was complete.',
}
const UNTOLD: TokenListener = { onTokens() {}, onEstimate() {} }

/** A request that is being decided. */
interface Entering {
  readonly req: IncomingMessage
  /** The host name the client asked for. */
  readonly host: string
  readonly origin: Origin
  readonly pool: UpstreamPool | null
  /** The network by which its client is limited. */
  readonly address: string | null
  readonly priorityOf: Serving['priorityOf']
  /** Functions that give back what it has taken so far. */
  readonly releases: NotAdmitted['leave'][]
  readonly leave: NotAdmitted['leave']
  /** Lets a client that waits for it send its body. */
  willRead(): void
}

/**
 * Creates the function that decides a request before anything else is done with it, synchronously where possible.
 * Null: the client has already gone.
 */
export function createAdmit({ limiter, serving, bounds, log, onNoPermit, tokens }: AdmitOptions) {
  const clients = countInFlight(bounds.maxClientRequests)
  const enterUpstream = createEnterUpstream(bounds)
  const logDenial = throttledLog(log, DENIAL_LINE_EVERY_MS)
  const listener = tokens ?? UNTOLD

  const enforce = enforceRequests<IncomingMessage>({
    limiter,
    log,
    identify: () => serving().identify,
    read: httpRequest,
  })

  let isProxyTold = false
  /** Said once: somebody who forges the header sends it as well, and must not fill the log. */
  function tellOfProxy({ socket }: IncomingMessage): void {
    isProxyTold = true
    const { header } = serving().clientAddress
    const consequence = 'everybody behind it counts as one caller'
    log(
      `ip:${limitedAddress(socket.remoteAddress)} sends ${header} and is not in trustedProxies, so ${consequence}; if it is your proxy, name it there`,
      { level: 'warn', cause: 'a peer that is not in trustedProxies', consequence },
    )
  }
  const claimsForwarding = ({ headers }: IncomingMessage) =>
    headers[serving().clientAddress.header] !== undefined

  function decided(entering: Entering, outcome: Outcome): MaybePromise<Admission> {
    const { req, pool, releases, leave } = entering
    if (!outcome.allowed) return denied(entering, outcome)
    if (outcome.ended !== null) releases.push(outcome.ended)
    if (pool === null) return rejected(NO_ROUTE, req, entering.origin.path[0] ?? null, leave)
    if (outcome.reserveTokens !== null) return reserveTokens(entering, outcome, pool)
    return enter(entering, outcome, pool, null, [])
  }

  function denied({ req, address, origin, leave }: Entering, outcome: Rejected): NotAdmitted {
    const { status, decision } = outcome
    const id = requestIdOf(req) as string
    const subject = decision.subject ?? `ip:${address}`
    logDenial(
      subject,
      () => denialWords(status, subject, decision),
      () => ({
        ...denialFields(status, subject, decision),
        id,
        method: `${req.method}`,
        path: pathOf(req),
      }),
    )
    const headers: HeaderField[] = [...outcome.headers, ['X-Request-Id', id]]
    const client = origin.path[0] ?? null
    return { answer: { ...outcome, headers }, client, reference: decision.reference, leave }
  }

  /** Only now, and only for what it reserves, is a request's body looked at. */
  async function reserveTokens(entering: Entering, outcome: Passed, pool: UpstreamPool): Promise<Admission> {
    const { req, releases, leave, origin } = entering
    const meters = outcome.decision?.tokens ?? []
    const asked = await readMaxTokens(req, meters, entering.willRead)
    if (asked === null) return rejected(CUT_OFF, req, origin.path[0] ?? null, leave)
    const { estimates, untold, begun } = asked
    const reserved = await (outcome.reserveTokens as NonNullable<Passed['reserveTokens']>)(estimates)
    if (!reserved.allowed) {
      giveBack(outcome)
      return denied(entering, reserved)
    }
    for (const { meter, reason } of untold) listener.onEstimate(meter, reason)
    const { decision } = reserved
    if (decision === null) return enter(entering, outcome, pool, null, begun)
    const length = req.headers['content-length']
    const bodyBytes = length === undefined ? null : Number(length)
    const tokens = new TokenReservation({ limiter, decision, estimates, bodyBytes, listener })
    releases.push(() => tokens.settle())
    return enter(entering, outcome, pool, tokens, begun)
  }

  /** It never reached the upstream, so it costs its caller nothing. */
  function giveBack({ decision }: Passed): void {
    if (decision !== null) limiter.refund(decision).catch(() => {})
  }

  function enter(
    entering: Entering,
    outcome: Passed,
    pool: UpstreamPool,
    tokens: TokenReservation | null,
    begun: Buffer[],
  ): MaybePromise<Admission> {
    const { req, address, priorityOf } = entering
    const { decision } = outcome
    const asking: Asking = {
      caller: `${address}`,
      kind: kindOf(req, decision?.rule ?? null),
      priority: priorityOf(decision),
    }
    const permit = enterUpstream(pool, req, asking)
    const admitted = { pool, tokens, begun }
    if (!(permit instanceof Promise)) return entered(entering, outcome, admitted, permit)
    return permit.then(given => entered(entering, outcome, admitted, given))
  }

  function entered(
    { req, host, origin, releases, leave }: Entering,
    outcome: Passed,
    admitted: Pick<Admitted, 'pool' | 'tokens' | 'begun'>,
    permit: UpstreamPermit | UpstreamRejection,
  ): Admission {
    if ('reason' in permit) {
      onNoPermit?.(permit)
      giveBack(outcome)
      return rejected(permit.rejection, req, origin.path[0] ?? null, leave)
    }
    releases.push(permit.leave)
    const id = requestIdOf(req) as string
    const introduction = forwardedHeaders(origin)
    introduction.push('X-Request-Id', id)
    const headers: HeaderField[] = [...outcome.headers, ['X-Request-Id', id]]
    return {
      answer: null,
      client: origin.path[0] ?? null,
      reference: null,
      ...admitted,
      permit,
      id,
      host,
      isPeerTrusted: origin.isPeerTrusted,
      introduction,
      headers,
      leave,
    }
  }

  function admit(req: IncomingMessage, willRead: () => void): MaybePromise<Admission | null> {
    const objection = rejectRequest(req, bounds.maxHeaders)
    if (objection !== null) return rejected(objection, req, null)
    const { clientAddress, cors, findRoute, priorityOf } = serving()
    const preflight = cors?.preflight(req) ?? null
    if (preflight !== null) {
      return { answer: preflight, client: null, reference: null, leave: () => {} }
    }
    const host = req.headers.host as string
    const origin = originOf(req, clientAddress, host)
    if (origin === null) return null
    if (!isProxyTold && !origin.isPeerTrusted && claimsForwarding(req)) tellOfProxy(req)
    setRequestId(req, requestId(req, origin))
    const address = limitedAddress(origin.path[0])
    const leaveClient = clients.enter(`${address}`)
    if (leaveClient === null) return rejected(TOO_MANY_AT_ONCE, req, origin.path[0] ?? null)
    const releases: NotAdmitted['leave'][] = [leaveClient]
    const leave: NotAdmitted['leave'] = status => {
      for (const leaveOne of releases) leaveOne(status)
    }
    const giveUp = (error: unknown): never => {
      leave(null)
      throw error
    }
    try {
      const pool = findRoute(host, req.url as string)
      // Held from before the decision: another configuration may come while it is awaited.
      if (pool !== null) releases.push(pool.hold())
      const entering = { req, host, origin, pool, address, releases, leave, priorityOf, willRead }
      const outcome = enforce(req)
      if (!('then' in outcome)) {
        const admission = decided(entering, outcome)
        return admission instanceof Promise ? admission.catch(giveUp) : admission
      }
      return outcome.then(known => decided(entering, known)).catch(giveUp)
    } catch (error) {
      return giveUp(error)
    }
  }
  return admit
}

function rejected(
  rejection: OwnRejection,
  req: IncomingMessage,
  client: string | null,
  leave: NotAdmitted['leave'] = () => {},
): NotAdmitted {
  const id = requestIdOf(req)
  const headers: HeaderField[] = [...(rejection.headers ?? [])]
  if (id !== undefined) headers.push(['X-Request-Id', id])
  return { answer: problemAnswer({ ...rejection, headers }), client, reference: null, leave }
}

/** Without the query, which may contain secrets. */
export function pathOf({ url = '' }: IncomingMessage): string {
  return printable(url.split('?', 1)[0] as string)
}
