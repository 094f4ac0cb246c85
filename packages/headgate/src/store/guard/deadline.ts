import type { Clock, Timers } from '../../clock.js'
import { HeadgateError, unexpected } from '../../errors.js'
import type { Eventually, Store } from '../store.js'

/** A timer this late means that the event loop was busy, not that the store was slow. */
const LATE_MS = 5
const EARLY_MS = 1
/** What a call then still gets: the request may only just have been sent. */
const GRACE_MS = 10

const DEFAULT_DEADLINE_MS = 30
const MAX_DEADLINE_MS = 60_000

export interface Deadline {
  readonly deadlineMs: number
  readonly clock: Clock
  readonly timers: Timers
  /** What is known to keep calls from being answered: then it is the error of one that is given up. */
  problem?(): HeadgateError | null
}

/** A call that is waited for. */
interface Call {
  dueMs: number
  /** Null when it has been settled. */
  giveUp: ((error: unknown) => void) | null
}

/**
 * Settles every call within `deadlineMs`, whatever the client does. No Node client gives a deadline that holds while
 * Redis is frozen. A call that missed it may still be carried out: it is neither sent again nor taken back.
 */
export function withDeadline(store: Store, options: Deadline): Store {
  const { deadlineMs, clock, timers, problem } = options
  const deadlines = createDeadlines({
    deadlineMs,
    nowMs: () => clock.nowUs() / 1000,
    timers,
    error: () =>
      problem?.() ??
      new HeadgateError('ERR_HEADGATE_STORE_TIMEOUT', `${store.source}: no answer within ${deadlineMs} ms`),
  })
  const within = <T>(work: Eventually<T>): Eventually<T> =>
    work instanceof Promise ? deadlines.watch(work) : work

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

interface DeadlineOptions {
  readonly deadlineMs: number
  readonly timers: Timers
  nowMs(): number
  error(): HeadgateError
}

/**
 * One timer for all calls: all have the same time, so they are due in the order they began, and the timer is that of
 * the oldest. A timer for each would cost more than the rest of the call.
 */
function createDeadlines(options: DeadlineOptions) {
  const { deadlineMs, nowMs, timers, error } = options
  const calls = new Line()
  /** Those that got a little longer, because this process was late itself. */
  const spared = new Line()
  let callOff: (() => void) | null = null

  function arm(): void {
    const dueMs = Math.min(calls.firstDueMs(), spared.firstDueMs())
    if (dueMs === Number.POSITIVE_INFINITY) return
    callOff = timers.after(Math.max(1, Math.floor(dueMs - nowMs())), giveUpDue)
  }

  function giveUpDue(): void {
    callOff = null
    // A timer may fire up to a millisecond early by the clock that is read.
    const now = nowMs() + EARLY_MS
    for (let call = calls.takeDue(now); call !== null; call = calls.takeDue(now)) {
      if (now - call.dueMs < LATE_MS) call.giveUp?.(error())
      // Timers run before sockets are read: the answer may be waiting there.
      else spared.add(call, now + GRACE_MS)
    }
    for (let call = spared.takeDue(now); call !== null; call = spared.takeDue(now)) call.giveUp?.(error())
    arm()
  }

  function settled(call: Call): void {
    call.giveUp = null
    calls.dropSettled()
    spared.dropSettled()
    // Nothing is left to wait for: a process that has nothing else to do may end.
    if (callOff !== null && calls.isEmpty && spared.isEmpty) {
      callOff()
      callOff = null
    }
  }

  return {
    watch<T>(work: Promise<T>): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        const call: Call = { dueMs: 0, giveUp: reject }
        calls.add(call, nowMs() + deadlineMs)
        if (callOff === null) arm()
        work.then(
          value => {
            settled(call)
            resolve(value)
          },
          failure => {
            settled(call)
            reject(failure)
          },
        )
      })
    },
  }
}

/** Calls in the order they are due. Settled ones leave when they come to the front. */
class Line {
  #calls: Call[] = []
  #front = 0

  get isEmpty(): boolean {
    return this.#front === this.#calls.length
  }

  add(call: Call, dueMs: number): void {
    call.dueMs = dueMs
    this.#calls.push(call)
  }

  firstDueMs(): number {
    return this.#calls[this.#front]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  dropSettled(): void {
    while (this.#calls[this.#front]?.giveUp === null) this.#next()
  }

  takeDue(nowMs: number): Call | null {
    this.dropSettled()
    const call = this.#calls[this.#front]
    if (call === undefined || call.dueMs > nowMs) return null
    this.#next()
    return call
  }

  /** What was left behind goes when it is half of the line, so that each call is moved at most once. */
  #next(): void {
    this.#front++
    if (this.#front * 2 < this.#calls.length && this.#front < this.#calls.length) return
    if (this.#front < 64 && this.#front < this.#calls.length) return
    this.#calls.splice(0, this.#front)
    this.#front = 0
  }
}
