import type { IncomingMessage } from 'node:http'
import type { MaybePromise } from 'headgate/internal'
import {
  type Asking,
  outcomeOfStatus,
  type Priority,
  type ReleaseUpstream,
  type UpstreamOutcome,
} from 'headgate/internal'
import type { AdaptiveConcurrency } from 'headgate/outbound'
import type { Bounds } from '../http/bounds.js'
import { countInFlight } from '../http/count-in-flight.js'
import { hasBody } from './end-to-end-headers.js'
import type { OwnRejection } from './own-answers.js'
import { poolName, type UpstreamPool } from './upstream-pool.js'

/** A request's permit at an upstream. */
export interface UpstreamPermit {
  /** The request is being sent, so the upstream may be working on it from now on. */
  sent(): void
  /** The upstream has begun to answer or, with null, an attempt has failed and another may follow. */
  answered(status: number | null): void
  /** The request has ended. Only the first call counts. */
  leave(): void
}

/** Why an upstream has no permit: it has as many in flight as it can sustain, or as the gateway allows at all. */
export interface UpstreamRejection {
  readonly reason: 'upstream-capacity' | 'upstream-connections'
  /** Host and port of the upstream's first server, as in the policy file. */
  readonly upstream: string
  readonly priority: Priority
  readonly rejection: OwnRejection
}

const DETAILS = {
  'upstream-capacity': 'The upstream has as many requests as it can take.',
  'upstream-connections': 'The upstream has as many requests as it may have at once.',
} as const
/** How long a request waits for its turn: as long as an answer takes without queueing, within these bounds. */
const LEAST_WAIT_MS = 20
const MOST_WAIT_MS = 500

/** Creates the function that gives requests a permit at their upstream. */
export function createEnterUpstream(
  bounds: Pick<Bounds, 'maxUpstreamConnections'>,
): (
  pool: UpstreamPool,
  req: IncomingMessage,
  asking: Asking,
) => MaybePromise<UpstreamPermit | UpstreamRejection> {
  const connections = countInFlight(bounds.maxUpstreamConnections)
  return (pool, req, asking) => {
    const leaveConnections = connections.enter(pool.config.urls[0] as string)
    if (leaveConnections === null) return noPermit(pool, 'upstream-connections', asking)
    const entered = (leaveAdaptive: ReleaseUpstream | null) => {
      if (leaveAdaptive !== null) return permitOf(leaveConnections, leaveAdaptive)
      leaveConnections()
      return noPermit(pool, 'upstream-capacity', asking)
    }
    if (pool.concurrency === null) return entered(() => {})
    const leaveAdaptive = enterAdaptive(pool.concurrency, req, asking)
    return leaveAdaptive instanceof Promise ? leaveAdaptive.then(entered) : entered(leaveAdaptive)
  }
}

/**
 * Takes a request's permit when its body is complete. Until then the upstream has nothing to do, and the client
 * chooses how slowly the body comes: a few slow ones would keep everybody else out.
 */
function enterAdaptive(
  concurrency: AdaptiveConcurrency,
  req: IncomingMessage,
  asking: Asking,
): MaybePromise<ReleaseUpstream | null> {
  const isLater = hasBody(req)
  if (isLater && concurrency.hasRoomFor(asking)) return whenComplete(concurrency, req, asking)
  const leave = isLater ? null : concurrency.enter(asking)
  if (leave !== null) return leave
  const restMs = concurrency.restMs(asking.kind) ?? MOST_WAIT_MS
  const timeoutMs = Math.min(MOST_WAIT_MS, Math.max(LEAST_WAIT_MS, restMs))
  return concurrency.acquire({ timeoutMs }, asking).then(given => {
    if (given === null || !isLater) return given
    given('unknown')
    return whenComplete(concurrency, req, asking)
  })
}

function whenComplete(
  concurrency: AdaptiveConcurrency,
  req: IncomingMessage,
  asking: Asking,
): ReleaseUpstream {
  let leave: ReleaseUpstream | null = null
  let isOver = false
  const begin = () => {
    if (!isOver) leave = concurrency.begin(asking)
  }
  if (req.readableEnded) begin()
  else req.once('end', begin)
  return ended => {
    isOver = true
    leave?.(ended)
  }
}

/**
 * The permit among requests that wait for an answer is freed when the answer begins: how slowly it is read is up to
 * the client.
 */
function permitOf(leaveConnections: () => void, leaveAdaptive: ReleaseUpstream): UpstreamPermit {
  let ended: UpstreamOutcome = 'unknown'
  return {
    sent() {
      ended = 'abandoned'
    },
    answered(status) {
      ended = status === null ? 'failed' : outcomeOfStatus(status)
      if (status !== null) leaveAdaptive(ended)
    },
    leave() {
      leaveAdaptive(ended)
      leaveConnections()
    },
  }
}

function noPermit(
  pool: UpstreamPool,
  reason: UpstreamRejection['reason'],
  { priority = 'normal' }: Asking,
): UpstreamRejection {
  const rejection: OwnRejection = {
    status: 503,
    detail: DETAILS[reason],
    reason,
    headers: [['Retry-After', '1']],
  }
  return { reason, upstream: poolName(pool), priority, rejection }
}
