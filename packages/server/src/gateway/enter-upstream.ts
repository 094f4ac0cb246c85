import type { IncomingMessage } from 'node:http'
import { type AdaptiveConcurrency, type HowItEnded, howAnswered, type LeaveUpstream } from 'headgate/outbound'
import type { Bounds } from '../http/bounds.js'
import { countInFlight } from '../http/count-in-flight.js'
import type { Refusal } from '../http/problem.js'
import { hasBody } from './end-to-end-headers.js'
import { poolName, type UpstreamPool } from './upstream-pool.js'

/** A request's place at an upstream. */
export interface UpstreamPlace {
  /** The upstream has begun to answer, or, by null, an attempt has failed and another may follow. */
  answered(status: number | null): void
  /** The request is over. Only the first time counts. */
  leave(): void
}

/** Why an upstream has no place: as many under way as its answers show that it can take, or as the gateway allows at all. */
export interface UpstreamRefusal {
  readonly reason: 'upstream-capacity' | 'upstream-connections'
  /** Host and port of the upstream's first server, as the policy file has them. */
  readonly upstream: string
  readonly refusal: Refusal
}

const DETAILS = {
  'upstream-capacity': 'The upstream has as many requests as it can take.',
  'upstream-connections': 'The upstream has as many requests as it may have at once.',
} as const

/** Makes what gives requests a place at their upstream. */
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
 * A request takes its place when its body has come whole. Until then the upstream has nothing to do, and how slowly it
 * comes is the client's choice: a few that take their time would keep everybody else out.
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

/** The place among those who wait for an answer is free when it begins: how slowly it is read is the client's affair. */
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
