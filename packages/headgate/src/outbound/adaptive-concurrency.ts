/**
 * Limits the requests in flight to an upstream to what its answers show it can sustain, and divides the permits fairly.
 * Counts this process alone.
 */
import { unexpected } from '../errors/headgate-error.js'
import { type Clock, systemClock, systemTimers, type Timers } from '../time/clock.js'
import { type Asking, FairPermits, type Waiting } from './fair-permits.js'
import { LatencyGradient } from './latency-gradient.js'

export interface AdaptiveConcurrencyOptions {
  /** The lowest the limit may get. */
  readonly floor: number
  /** The highest the limit may get. */
  readonly ceiling: number
  /** How many may wait for a permit; whoever is least important and has the most waiting gives way. Default: any number. */
  readonly maxWaiting?: number
  readonly clock?: Clock
  readonly timers?: Timers
}

/**
 * How a request ended. `answered`: its latency counts. `failed`: no answer came, or one that signals overload.
 * `abandoned`: given up here before an answer. `unknown`: the answer says nothing about load, or it was never sent.
 */
export type UpstreamOutcome = 'answered' | 'failed' | 'abandoned' | 'unknown'

/** Gives a permit back. Only the first call counts. */
export type ReleaseUpstream = (ended: UpstreamOutcome) => void

export interface AdaptiveConcurrency {
  /** How many may be in flight at once now. */
  readonly limit: number
  readonly inFlight: number
  /** Whether a request would get a permit now: nobody waits, and the limit is not reached. */
  readonly hasRoom: boolean
  /** Whether this request would get a permit now. */
  hasRoomFor(asking: Asking): boolean
  /** How long answers of a kind take without queueing; null before the first. */
  restMs(kind?: string): number | null
  /** Takes a permit; null if there is none. Overtakes those who wait only if they have more than their fair part. */
  enter(asking?: Asking): ReleaseUpstream | null
  /** Takes a permit even above the limit, for requests that were admitted before they had work for the upstream. */
  begin(asking?: Asking): ReleaseUpstream
  /** Waits for a permit. Null after the timeout, or to give way; rejects with the signal's reason. */
  acquire(
    patience: { readonly timeoutMs: number; readonly signal?: AbortSignal },
    asking?: Asking,
  ): Promise<ReleaseUpstream | null>
}

const MOST_CONCURRENCY = 100_000

const MOST_TIMEOUT_MS = 2 ** 31 - 1

interface Waiter extends Waiting {
  end(leave: ReleaseUpstream | null): void
}

/** A request that was given up while the upstream may still be working on it. */
interface Ghost {
  readonly asking: Asking
  readonly beganUs: number
  readonly goneUs: number
}

/** How long a request that was given up is assumed to be worked on, if no answer shows that it is not. */
const GHOST_US = 1_000_000
const ANYBODY: Asking = {}

/** Creates the limit of one upstream, which adapts to what it can sustain. */
export function adaptiveConcurrency(options: AdaptiveConcurrencyOptions): AdaptiveConcurrency {
  const { clock = systemClock, timers = systemTimers, maxWaiting = Number.POSITIVE_INFINITY } = options
  validateOptions(options)
  const gradient = new LatencyGradient(options, clock.nowUs())
  const permits = new FairPermits()
  let inFlight = 0
  let ghosts: Ghost[] = []

  /**
   * An upstream does not always notice that a client has left. Its permit is free when a request that began later has
   * been answered, or after a while, so that clients who give up do not fill the upstream's queue; one request may
   * always ask.
   */
  function isFree(): boolean {
    const sinceUs = clock.nowUs() - GHOST_US
    for (let oldest = ghosts[0]; oldest !== undefined && oldest.goneUs <= sinceUs; oldest = ghosts[0]) {
      ghosts.shift()
      permits.leave(oldest.asking)
    }
    return inFlight + ghosts.length < gradient.limit || inFlight === 0
  }

  function haunt(ghost: Ghost): void {
    ghosts.push(ghost)
    if (ghosts.length > options.ceiling) permits.leave((ghosts.shift() as Ghost).asking)
  }

  function layGhosts(untilUs: number): void {
    if (ghosts.length === 0) return
    for (const { asking, beganUs } of ghosts) if (beganUs <= untilUs) permits.leave(asking)
    ghosts = ghosts.filter(({ beganUs }) => beganUs > untilUs)
  }

  function take(asking: Asking = ANYBODY): ReleaseUpstream {
    inFlight++
    permits.take(asking)
    const flight = gradient.begin(inFlight, clock.nowUs(), asking.kind)
    let isIn = true
    return ended => {
      if (!isIn) return
      isIn = false
      inFlight--
      const nowUs = clock.nowUs()
      if (ended === 'abandoned') haunt({ asking, beganUs: flight.beganUs, goneUs: nowUs })
      else permits.leave(asking)
      if (ended === 'answered') {
        layGhosts(flight.beganUs)
        gradient.answered(flight, nowUs)
      } else if (ended === 'failed') gradient.failed(flight, nowUs)
      else if (ended === 'abandoned') gradient.abandoned(flight, nowUs)
      else gradient.forget(flight)
      gradient.look(nowUs)
      serveWaiting()
    }
  }

  function serveWaiting(): void {
    for (;;) {
      const next = permits.waiting === 0 ? null : permits.next(gradient.limit, isFree(), mayBeExceeded())
      if (next === null) return
      ;(next as Waiter).end(take(next.asking))
    }
  }

  function mayBeExceeded(): boolean {
    return inFlight < options.ceiling
  }

  function hasRoomFor(asking: Asking): boolean {
    if (isFree() && permits.waiting === 0) return true
    return mayBeExceeded() && permits.mayExceed(asking, gradient.limit)
  }

  function enter(asking: Asking = ANYBODY): ReleaseUpstream | null {
    gradient.look(clock.nowUs())
    return hasRoomFor(asking) ? take(asking) : null
  }

  return {
    get limit() {
      return gradient.limit
    },
    get inFlight() {
      return inFlight
    },
    get hasRoom() {
      return permits.waiting === 0 && isFree()
    },
    hasRoomFor,
    restMs(kind) {
      const restUs = gradient.restUs(kind)
      return Number.isFinite(restUs) ? restUs / 1_000 : null
    },
    enter,
    begin: take,
    async acquire({ timeoutMs, signal }, asking = ANYBODY) {
      signal?.throwIfAborted()
      const leave = enter(asking)
      if (leave !== null || timeoutMs <= 0) return leave
      return new Promise((resolve, reject) => {
        const stop = () => {
          permits.stopWaiting(waiter)
          cancel()
          signal?.removeEventListener('abort', abort)
        }
        const waiter: Waiter = {
          asking,
          end(given) {
            stop()
            resolve(given)
          },
        }
        const abort = () => {
          stop()
          reject(signal?.reason)
        }
        const cancel = timers.after(Math.min(timeoutMs, MOST_TIMEOUT_MS), () => waiter.end(null))
        signal?.addEventListener('abort', abort, { once: true })
        permits.wait(waiter)
        if (permits.waiting > maxWaiting) (permits.last() as Waiter).end(null)
      })
    },
  }
}

function validateOptions({ floor, ceiling, maxWaiting }: AdaptiveConcurrencyOptions): void {
  const isCount = (value: unknown, least: number) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= MOST_CONCURRENCY
  const reject = (field: string, least: string, got: unknown) => {
    const expected = `a whole number from ${least} to ${MOST_CONCURRENCY}`
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', field, expected, got)
  }
  if (!isCount(floor, 1)) reject('floor', '1', floor)
  if (!isCount(ceiling, floor)) reject('ceiling', 'the floor', ceiling)
  if (maxWaiting !== undefined && !isCount(maxWaiting, 0)) reject('maxWaiting', '0', maxWaiting)
}
