import { HeadgateError } from '../errors/headgate-error.js'

/** Waits for `work`, at most `ms`. After that it rejects, and a later result is dropped. */
export function withinTime<T>(work: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(
        new HeadgateError(
          'ERR_HEADGATE_LOOKUP_TIMEOUT',
          `subject: expected identify, skip, subject, tier, cost and scope to settle within ${ms} ms; got no answer`,
        ),
      )
    }, ms)
    work.finally(() => clearTimeout(timer)).then(resolve, reject)
  })
}
