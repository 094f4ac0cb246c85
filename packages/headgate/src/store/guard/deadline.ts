import type { Clock, Timers } from '../../clock.js'
import { HeadgateError, unexpected } from '../../errors.js'
import type { Eventually, Store } from '../store.js'

/** A timer this late means that the event loop was busy, not that the store was slow. */
const LATE_MS = 5
/** What a call then still gets: the request may only just have been sent. */
const GRACE_MS = 10

const DEFAULT_DEADLINE_MS = 30
const MAX_DEADLINE_MS = 60_000

/**
 * Settles every call within `deadlineMs`, whatever the client does. No Node client gives a deadline that holds while
 * Redis is frozen. A call that missed it may still be carried out: it is neither sent again nor taken back.
 */
export function withDeadline(store: Store, deadlineMs: number, clock: Clock, timers: Timers): Store {
  const nowMs = (): number => clock.nowUs() / 1000

  function within<T>(work: Eventually<T>): Eventually<T> {
    if (!(work instanceof Promise)) return work
    return new Promise((resolve, reject) => {
      const dueMs = nowMs() + deadlineMs
      const giveUp = (): void => {
        reject(
          new HeadgateError(
            'ERR_HEADGATE_STORE_TIMEOUT',
            `${store.source}: no answer within ${deadlineMs} ms`,
          ),
        )
      }
      let callOff = timers.after(deadlineMs, () => {
        if (nowMs() - dueMs < LATE_MS) giveUp()
        // Timers run before sockets are read: the answer may be waiting there.
        else callOff = timers.after(GRACE_MS, giveUp)
      })
      work.then(resolve, reject).finally(() => callOff())
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

export function parseDeadlineMs(value: unknown): number {
  if (value === undefined) return DEFAULT_DEADLINE_MS
  if (typeof value === 'number' && value >= 1 && value <= MAX_DEADLINE_MS) return value
  throw unexpected(
    'ERR_HEADGATE_INVALID_OPTION',
    'deadlineMs',
    `a number from 1 to ${MAX_DEADLINE_MS}`,
    value,
  )
}
