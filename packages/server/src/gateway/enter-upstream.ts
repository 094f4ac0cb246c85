import { type HowItEnded, howAnswered, type LeaveUpstream } from 'headgate/outbound'
import { countInFlight } from '../http/count-in-flight.js'
import type { Refusal } from '../http/problem.js'
import type { Bounds } from './bounds.js'
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
): (pool: UpstreamPool) => UpstreamPlace | UpstreamRefusal {
  const connections = countInFlight(bounds.maxUpstreamConnections)
  return pool => {
    const leaveConnections = connections.enter(pool.config.urls[0] as string)
    if (leaveConnections === null) return noPlace(pool, 'upstream-connections')
    const leaveAdaptive = pool.concurrency === null ? () => {} : pool.concurrency.enter()
    if (leaveAdaptive !== null) return placeOf(leaveConnections, leaveAdaptive)
    leaveConnections()
    return noPlace(pool, 'upstream-capacity')
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
