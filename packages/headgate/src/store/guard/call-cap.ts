/**
 * Bounds the calls a process makes to the store per second, for stores where each call is paid for. Beyond it
 * nothing is asked, and the failure mode decides.
 */
import { HeadgateError } from '../../errors/headgate-error.js'
import type { Clock } from '../../time/clock.js'
import type { Send } from './call.js'

const SECOND_US = 1_000_000

/** Passes on at most `perSecond` calls in each second of the clock. */
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
