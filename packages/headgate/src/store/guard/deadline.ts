import { HeadgateError } from '../../errors.js'
import type { Eventually, Store } from '../store.js'

/**
 * Settles every call within `deadlineMs`, whatever the client does. No Node client gives a deadline that holds while
 * Redis is frozen. A call that missed it may still be carried out: it is neither sent again nor taken back.
 */
export function withDeadline(store: Store, deadlineMs: number): Store {
  function within<T>(work: Eventually<T>): Eventually<T> {
    if (!(work instanceof Promise)) return work
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(
          new HeadgateError(
            'ERR_HEADGATE_STORE_TIMEOUT',
            `${store.source}: no answer within ${deadlineMs} ms`,
          ),
        )
      }, deadlineMs)
      work.then(resolve, reject).finally(() => clearTimeout(timer))
    })
  }

  return {
    source: store.source,
    decide: question => within(store.decide(question)),
    peek: question => within(store.peek(question)),
    refund: refunds => within(store.refund(refunds)),
    reset: checks => within(store.reset(checks)),
    close: () => store.close(),
  }
}
