/** Requests under way at an upstream, at most as many as its answers show that it can take. Of this process alone. */
import { unexpected } from '../errors/headgate-error.js'
import { type Clock, systemClock, systemTimers, type Timers } from '../time/clock.js'
import { LatencyGradient } from './latency-gradient.js'

export interface AdaptiveConcurrencyOptions {
  /** The limit is never below it. */
  readonly floor: number
  /** The limit is never above it. */
  readonly ceiling: number
  readonly clock?: Clock
  readonly timers?: Timers
}

/**
 * `answered`: the time it took counts. `failed`: no answer came, or one that says that there is too much to do.
 * `abandoned`: given up here before there was an answer. `unknown`: the answer says nothing about how much there is to do.
 */
export type HowItEnded = 'answered' | 'failed' | 'abandoned' | 'unknown'

/** Gives a place back. Only the first time counts. */
export type LeaveUpstream = (ended: HowItEnded) => void

export interface AdaptiveConcurrency {
  /** How many may be under way at once, now. */
  readonly limit: number
  readonly underWay: number
  /** Whether a request that comes now would get a place: nobody waits, and the limit is not reached. */
  readonly hasRoom: boolean
  /** Takes a place; null when there is none. Never passes those who wait. */
  enter(): LeaveUpstream | null
  /** Takes a place, also above the limit: for what was let in before it had anything for the upstream to do. */
  begin(): LeaveUpstream
  /** Waits for a place, in the order of asking. Null when the time is up; rejects with the signal's reason. */
  acquire(patience: {
    readonly timeoutMs: number
    readonly signal?: AbortSignal
  }): Promise<LeaveUpstream | null>
}

const MOST_CONCURRENCY = 100_000

const MOST_TIMEOUT_MS = 2 ** 31 - 1

type Waiting = (leave: LeaveUpstream | null) => void

/** Makes what counts the requests under way at one upstream and finds out how many it can take. */
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
