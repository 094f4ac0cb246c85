/**
 * Limits the requests in flight to an upstream to what its answers show it can sustain. Counts this process alone.
 */
import { unexpected } from '../errors/headgate-error.js'
import { type Clock, systemClock, systemTimers, type Timers } from '../time/clock.js'
import { LatencyGradient } from './latency-gradient.js'

export interface AdaptiveConcurrencyOptions {
  /** The lowest the limit may get. */
  readonly floor: number
  /** The highest the limit may get. */
  readonly ceiling: number
  readonly clock?: Clock
  readonly timers?: Timers
}

/**
 * How a request ended. `answered`: its latency counts. `failed`: no answer came, or one that signals overload.
 * `abandoned`: given up here before an answer. `unknown`: the answer says nothing about load.
 */
export type HowItEnded = 'answered' | 'failed' | 'abandoned' | 'unknown'

/** Gives a place back. Only the first call counts. */
export type LeaveUpstream = (ended: HowItEnded) => void

export interface AdaptiveConcurrency {
  /** How many may be in flight at once now. */
  readonly limit: number
  readonly underWay: number
  /** Whether a request would get a place now: nobody waits, and the limit is not reached. */
  readonly hasRoom: boolean
  /** Takes a place; null if there is none. Never overtakes those who wait. */
  enter(): LeaveUpstream | null
  /** Takes a place even above the limit, for requests that were admitted before they had work for the upstream. */
  begin(): LeaveUpstream
  /** Waits for a place, first come, first served. Null after the timeout; rejects with the signal's reason. */
  acquire(patience: {
    readonly timeoutMs: number
    readonly signal?: AbortSignal
  }): Promise<LeaveUpstream | null>
}

const MOST_CONCURRENCY = 100_000

const MOST_TIMEOUT_MS = 2 ** 31 - 1

type Waiting = (leave: LeaveUpstream | null) => void

/** Creates the limit of one upstream, which adapts to what it can sustain. */
export function adaptiveConcurrency(options: AdaptiveConcurrencyOptions): AdaptiveConcurrency {
  const { clock = systemClock, timers = systemTimers } = options
  refuseMistakes(options)
  const gradient = new LatencyGradient(options, clock.nowUs())
  const waiting = new Set<Waiting>()
  let underWay = 0

  function take(): LeaveUpstream {
    underWay++
    const window = gradient.begin(underWay)
    const beganUs = clock.nowUs()
    let isIn = true
    return ended => {
      if (!isIn) return
      isIn = false
      underWay--
      const nowUs = clock.nowUs()
      if (ended === 'answered') gradient.answered(window, nowUs - beganUs, nowUs)
      if (ended === 'failed') gradient.failed(window, nowUs)
      if (ended === 'abandoned') gradient.abandoned(window, nowUs - beganUs, nowUs)
      for (const next of waiting) {
        if (underWay >= gradient.limit) return
        waiting.delete(next)
        next(take())
      }
    }
  }

  const hasRoom = (): boolean => waiting.size === 0 && underWay < gradient.limit

  function enter(): LeaveUpstream | null {
    return hasRoom() ? take() : null
  }

  return {
    get limit() {
      return gradient.limit
    },
    get underWay() {
      return underWay
    },
    get hasRoom() {
      return hasRoom()
    },
    enter,
    begin: take,
    async acquire({ timeoutMs, signal }) {
      signal?.throwIfAborted()
      const leave = enter()
      if (leave !== null || timeoutMs <= 0) return leave
      return new Promise((resolve, reject) => {
        const next: Waiting = given => {
          waiting.delete(next)
          callOff()
          signal?.removeEventListener('abort', abort)
          resolve(given)
        }
        const abort = () => {
          waiting.delete(next)
          callOff()
          reject(signal?.reason)
        }
        const callOff = timers.after(Math.min(timeoutMs, MOST_TIMEOUT_MS), () => next(null))
        signal?.addEventListener('abort', abort, { once: true })
        waiting.add(next)
      })
    },
  }
}

function refuseMistakes({ floor, ceiling }: AdaptiveConcurrencyOptions): void {
  const isCount = (value: unknown, least: number) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= MOST_CONCURRENCY
  const refuse = (field: string, least: string, got: unknown) => {
    const expected = `a whole number from ${least} to ${MOST_CONCURRENCY}`
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', field, expected, got)
  }
  if (!isCount(floor, 1)) refuse('floor', '1', floor)
  if (!isCount(ceiling, floor)) refuse('ceiling', 'the floor', ceiling)
}
