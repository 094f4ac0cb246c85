import { HeadgateError } from '../../errors/headgate-error.js'
import type { Timers } from '../../time/clock.js'

/** Waits for what is asked of Redis beside the requests, but no longer than `ms`: a Redis that hangs must not hold up its readers. */
export function withinTime<T>(timers: Timers, ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const callOff = timers.inBackground(ms, () =>
      reject(new HeadgateError('ERR_HEADGATE_STORE_TIMEOUT', `redis: no answer within ${ms} ms`)),
    )
    work.then(resolve, reject).finally(callOff)
  })
}
