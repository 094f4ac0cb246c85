import { HeadgateError } from '../errors/headgate-error.js'

/** Waits for `work`, at most `ms`; after that it fails, and a later result is dropped. */
export function withinTime<T>(work: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(
        new HeadgateError(
          'ERR_HEADGATE_LOOKUP_TIMEOUT',
          `subject: expected who is asking, the tier, the cost and the scope within ${ms} ms; got no answer`,
        ),
      )
    }, ms)
    work.finally(() => clearTimeout(timer)).then(resolve, reject)
  })
}
