import { HeadgateError } from '../../errors/headgate-error.js'
import type { Timers } from '../../time/clock.js'

/** Waits for background work on Redis, at most `ms`: a hanging Redis must not hold up its readers. */
export function withinTime<T>(timers: Timers, ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const callOff = timers.inBackground(ms, () =>
      reject(new HeadgateError('ERR_HEADGATE_STORE_TIMEOUT', `redis: no answer within ${ms} ms`)),
    )
    work.then(resolve, reject).finally(callOff)
  })
}
