import type { IncomingMessage } from 'node:http'
import { type Eventually, type HeaderField, limitedAddress, type RuleLimiter } from 'headgate'
import type { Outcome, Passed } from 'headgate/adapter'
import type { Asking } from 'headgate/outbound'
import type { Bounds } from '../http/bounds.js'
import { countInFlight } from '../http/count-in-flight.js'
import { httpRequest, requestIdOf, setRequestId } from '../http/http-request.js'
import { type HttpAnswer, problemAnswer, type Refusal } from '../http/problem.js'
import { throttledLog, type WriteLine } from '../log/write-line.js'
import type { Introduction } from './end-to-end-headers.js'
import { enforceRequests } from './enforce-requests.js'
import { createEnterUpstream, type UpstreamPlace, type UpstreamRefusal } from './enter-upstream.js'
import { forwardedHeaders, type Origin, originOf, requestId } from './forwarded-headers.js'
import { denialWords } from './quota-words.js'
import { refuseRequest } from './refuse-request.js'
import { kindOf } from './request-kind.js'
import type { Serving } from './serving.js'
import type { UpstreamPool } from './upstream-pool.js'

export interface AdmitOptions {
  readonly limiter: RuleLimiter
  /** Returns the configuration in force. Called once per request, which is then served by it to its end. */
  serving(): Serving
  readonly bounds: Bounds
  readonly log: WriteLine
  /** Called for every request for which its upstream had no place. */
  onNoPlace?: ((refusal: UpstreamRefusal) => void) | undefined
}

/**
 * How to continue with a request. `leave` is called with the status of its response when it ends, and gives its
 * places back.
 */
export type Admission = Admitted | NotAdmitted

export interface Admitted extends Introduction {
  readonly answer: null
  readonly pool: UpstreamPool
  /** Its place at the upstream. */
  readonly place: UpstreamPlace
  readonly id: string
  /** The host name the client asked for. */
  readonly host: string
  /** Headers of the response beside those of the upstream. */
  readonly headers: readonly HeaderField[]
  leave(status: number | null): void
}

export interface NotAdmitted {
  readonly answer: HttpAnswer
  /** Whether it admits a page of another origin, and says all that is to be said about it. */
  readonly isPreflight?: true
  leave(status: number | null): void
}

const DENIAL_LINE_EVERY_MS = 5_000
const TOO_MANY_AT_ONCE: Refusal = {
  status: 429,
  detail: 'Too many requests of this client are under way at once.',
  headers: [['Retry-After', '1']],
}
const NO_ROUTE: Refusal = { status: 404, detail: 'No route is for this host and path.' }

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
  readonly leavers: NotAdmitted['leave'][]
  readonly leave: NotAdmitted['leave']
}

/**
 * Creates the function that decides a request before anything else is done with it, synchronously where possible.
 * Null: the client has already gone.
 */
export function createAdmit({ limiter, serving, bounds, log, onNoPlace }: AdmitOptions) {
  const clients = countInFlight(bounds.maxClientRequests)
  const enterUpstream = createEnterUpstream(bounds)
  const logDenial = throttledLog(log, DENIAL_LINE_EVERY_MS)

  const enforce = enforceRequests<IncomingMessage>({
    limiter,
    log,
    identify: () => serving().identify,
    read: httpRequest,
  })

  function decided(entering: Entering, outcome: Outcome): Eventually<Admission> {
    const { req, pool, address, leavers, leave, priorityOf } = entering
    if (!outcome.allowed) {
      const { status, decision } = outcome
      logDenial(`${address}`, () => denialWords(status, `ip:${address}`, decision))
      const headers: HeaderField[] = [...outcome.headers, ['X-Request-Id', requestIdOf(req) as string]]
      return { answer: { ...outcome, headers }, leave }
    }
    if (outcome.ended !== null) leavers.push(outcome.ended)
    if (pool === null) return refused(NO_ROUTE, leave)
    const { decision } = outcome
    const asking: Asking = {
      caller: `${address}`,
      kind: kindOf(req, decision?.rule ?? null),
      priority: priorityOf(decision),
    }
    const place = enterUpstream(pool, req, asking)
    if (!(place instanceof Promise)) return entered(entering, outcome, pool, place)
    return place.then(given => entered(entering, outcome, pool, given))
  }

  function entered(
    { req, host, origin, leavers, leave }: Entering,
    outcome: Passed,
    pool: UpstreamPool,
    place: UpstreamPlace | UpstreamRefusal,
  ): Admission {
    if ('reason' in place) {
      onNoPlace?.(place)
      // It never reached the upstream, so it costs its caller nothing.
      if (outcome.decision !== null) limiter.refund(outcome.decision).catch(() => {})
      return refused(place.refusal, leave)
    }
    leavers.push(place.leave)
    const id = requestIdOf(req) as string
    const introduction = forwardedHeaders(origin)
    introduction.push('X-Request-Id', id)
    const headers: HeaderField[] = [...outcome.headers, ['X-Request-Id', id]]
    return {
      answer: null,
      pool,
      place,
      id,
      host,
      isPeerTrusted: origin.isPeerTrusted,
      introduction,
      headers,
      leave,
    }
  }

  function admit(req: IncomingMessage): Eventually<Admission | null> {
    const objection = refuseRequest(req, bounds.maxHeaders)
    if (objection !== null) return refused(objection)
    const { clientAddress, cors, findRoute, priorityOf } = serving()
    const preflight = cors?.preflight(req) ?? null
    if (preflight !== null) return { answer: preflight, isPreflight: true, leave: () => {} }
    const host = req.headers.host as string
    const origin = originOf(req, clientAddress, host)
    if (origin === null) return null
    setRequestId(req, requestId(req, origin))
    const address = limitedAddress(origin.path[0])
    const leaveClient = clients.enter(`${address}`)
    if (leaveClient === null) return refused(TOO_MANY_AT_ONCE)
    const leavers: NotAdmitted['leave'][] = [leaveClient]
    const leave: NotAdmitted['leave'] = status => {
      for (const leaveOne of leavers) leaveOne(status)
    }
    const giveUp = (error: unknown): never => {
      leave(null)
      throw error
    }
    try {
      const pool = findRoute(host, req.url as string)
      // Held from before the decision: another configuration may come while it is awaited.
      if (pool !== null) leavers.push(pool.hold())
      const entering = { req, host, origin, pool, address, leavers, leave, priorityOf }
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

function refused(refusal: Refusal, leave: NotAdmitted['leave'] = () => {}): NotAdmitted {
  return { answer: problemAnswer(refusal), leave }
}
