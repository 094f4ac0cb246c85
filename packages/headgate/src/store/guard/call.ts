/** Calls to the nodes of a remote store, and the short stages that each call passes. */

import type { Check } from '../../engine/question.js'
import { HeadgateError } from '../../errors/headgate-error.js'
import type { StoreRecorder } from '../../observe/statistics/store-counts.js'
import type { Clock } from '../../time/clock.js'
import { settleWith, type Waiter } from '../waiter.js'
import type { FirstConnection } from './remote.js'

/** One call to a node of a remote store: a batch of questions, refunds or a reset. */
export interface Call<Reply> {
  /** The node that answers it; '' if there is only one. */
  readonly node: string
  /** One of its checks, so that a probe can be made like it. */
  readonly sample: Check | undefined
  /** Its number of checks: what it costs the node. */
  readonly checks: number
  /** Makes the call. Rejects if it fails, and never throws. */
  send(): Promise<Reply>
}

/** Passes a call on towards its node; `waiter` gets the outcome. */
export type Send = <Reply>(call: Call<Reply>, waiter: Waiter<Reply>) => void

/** The end of the pipeline: makes the call. */
export const sendCall: Send = (call, waiter) => settleWith(waiter, call.send())

/** Counts calls, those that failed, and how long the others took. */
export function withCounts(next: Send, recorder: StoreRecorder, clock: Clock): Send {
  class CountedWaiter<Reply> implements Waiter<Reply> {
    readonly beganUs = clock.nowUs()

    constructor(readonly waiter: Waiter<Reply>) {}

    answered(reply: Reply): void {
      recorder.latency.add(clock.nowUs() - this.beganUs, 1)
      this.waiter.answered(reply)
    }

    failed(error: unknown): void {
      recorder.failedCalls++
      this.waiter.failed(error)
    }
  }

  return (call, waiter) => {
    recorder.calls++
    recorder.checks += call.checks
    next(call, new CountedWaiter(waiter))
  }
}

/** Makes a call when there is a connection, which is waited for only once: when the store is new. */
export function whenConnected(next: Send, connection: FirstConnection): Send {
  return (call, waiter) => {
    const wait = connection.wait()
    if (wait === undefined) next(call, waiter)
    else
      wait.then(
        () => next(call, waiter),
        error => waiter.failed(error),
      )
  }
}

const SECOND_US = 1_000_000

/**
 * Passes on at most `perSecond` calls of each second of the clock, where each call is paid for. What comes beyond it is not
 * asked: the failure mode decides.
 */
export function withCallCap(next: Send, perSecond: number, clock: Clock): Send {
  let second = 0
  let calls = 0
  return (call, waiter) => {
    const now = Math.floor(clock.nowUs() / SECOND_US)
    if (now !== second) {
      second = now
      calls = 0
    }
    if (calls >= perSecond) {
      waiter.failed(capped(perSecond))
      return
    }
    calls++
    next(call, waiter)
  }
}

/** Says nothing about the node, which was not asked. */
function capped(perSecond: number): HeadgateError {
  return new HeadgateError(
    'ERR_HEADGATE_STORE_CAPPED',
    `redis: not asked, because maxCallsPerSecond (${perSecond}) is used up`,
  )
}
