import type { Clock, Timers } from '../../clock.js'
import type { Answer, Check, Question, Refund } from '../../engine/question.js'
import { HeadgateError, unexpected } from '../../errors.js'
import type { Eventually, Source, Store } from '../store.js'
import { type How, putOf, storeWith, tellLater, type Waiter } from '../waiter.js'
import { Deadlines } from './deadlines.js'

const DEFAULT_DEADLINE_MS = 30
const MAX_DEADLINE_MS = 60_000

export interface Deadline {
  readonly deadlineMs: number
  readonly clock: Clock
  readonly timers: Timers
  /** What is known to keep calls from being answered: then it is the error of one that is given up. */
  problem?(): HeadgateError | null
}

/**
 * Settles every call within `deadlineMs`, whatever the client does. No Node client gives a deadline that holds while
 * Redis is frozen. A call that missed it may still be carried out: it is neither sent again nor taken back.
 */
export function withDeadline(store: Store, options: Deadline): Store {
  const put = putOf(store)
  const deadlines = new Deadlines({
    ...options,
    error: () => options.problem?.() ?? timeout(store.source, options.deadlineMs),
  })

  function putInTime(how: How, question: Question, waiter: Waiter<Answer>): Answer | null {
    const call = deadlines.begin(waiter)
    let answer: Answer | null = null
    try {
      answer = put(how, question, call)
    } catch (error) {
      call.failed(error)
    }
    if (answer !== null) call.end()
    return answer
  }

  function within<T>(work: Eventually<T>): Eventually<T> {
    if (!(work instanceof Promise)) return work
    return new Promise<T>((resolve, reject) => {
      tellLater(deadlines.begin({ answered: resolve, failed: reject }), work)
    })
  }

  return storeWith(putInTime, {
    source: store.source,
    refund: (refunds: readonly Refund[]) => within(store.refund(refunds)),
    reset: (checks: readonly Check[]) => within(store.reset(checks)),
    close: () => store.close(),
  })
}

/** The error of a call that got no answer in time. */
export function timeout(source: Source, deadlineMs: number): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_STORE_TIMEOUT', `${source}: no answer within ${deadlineMs} ms`)
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
