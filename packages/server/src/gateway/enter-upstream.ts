import type { IncomingMessage } from 'node:http'
import { type AdaptiveConcurrency, type HowItEnded, howAnswered, type LeaveUpstream } from 'headgate/outbound'
import type { Bounds } from '../http/bounds.js'
import { countInFlight } from '../http/count-in-flight.js'
import type { Refusal } from '../http/problem.js'
import { hasBody } from './end-to-end-headers.js'
import { poolName, type UpstreamPool } from './upstream-pool.js'

/** A request's place at an upstream. */
export interface UpstreamPlace {
  /** The upstream has begun to answer or, with null, an attempt has failed and another may follow. */
  answered(status: number | null): void
  /** The request has ended. Only the first call counts. */
  leave(): void
}

/** Why an upstream has no place: it has as many in flight as it can sustain, or as the gateway allows at all. */
export interface UpstreamRefusal {
  readonly reason: 'upstream-capacity' | 'upstream-connections'
  /** Host and port of the upstream's first server, as in the policy file. */
  readonly upstream: string
  readonly refusal: Refusal
}

const DETAILS = {
  'upstream-capacity': 'The upstream has as many requests as it can take.',
  'upstream-connections': 'The upstream has as many requests as it may have at once.',
} as const

/** Creates the function that gives requests a place at their upstream. */
export function createEnterUpstream(
  bounds: Pick<Bounds, 'maxUpstreamConnections'>,
): (pool: UpstreamPool, req: IncomingMessage) => UpstreamPlace | UpstreamRefusal {
  const connections = countInFlight(bounds.maxUpstreamConnections)
  return (pool, req) => {
    const leaveConnections = connections.enter(pool.config.urls[0] as string)
    if (leaveConnections === null) return noPlace(pool, 'upstream-connections')
    const leaveAdaptive = pool.concurrency === null ? () => {} : enterAdaptive(pool.concurrency, req)
    if (leaveAdaptive !== null) return placeOf(leaveConnections, leaveAdaptive)
    leaveConnections()
    return noPlace(pool, 'upstream-capacity')
  }
}

/**
 * Takes a request's place when its body is complete. Until then the upstream has nothing to do, and the client
 * chooses how slowly the body comes: a few slow ones would keep everybody else out.
 */
function enterAdaptive(concurrency: AdaptiveConcurrency, req: IncomingMessage): LeaveUpstream | null {
  if (!hasBody(req)) return concurrency.enter()
  if (!concurrency.hasRoom) return null
  let leave: LeaveUpstream | null = null
  let isOver = false
  req.once('end', () => {
    if (!isOver) leave = concurrency.begin()
  })
  return ended => {
    isOver = true
    leave?.(ended)
  }
}

/**
 * The place among requests that wait for an answer is freed when the answer begins: how slowly it is read is up to
 * the client.
 */
function placeOf(leaveConnections: () => void, leaveAdaptive: LeaveUpstream): UpstreamPlace {
  let ended: HowItEnded = 'abandoned'
  return {
    answered(status) {
      ended = status === null ? 'failed' : howAnswered(status)
      if (status !== null) leaveAdaptive(ended)
    },
    leave() {
      leaveAdaptive(ended)
      leaveConnections()
    },
  }
}

function noPlace(pool: UpstreamPool, reason: UpstreamRefusal['reason']): UpstreamRefusal {
  const refusal: Refusal = { status: 503, detail: DETAILS[reason], reason, headers: [['Retry-After', '1']] }
  return { reason, upstream: poolName(pool), refusal }
}
