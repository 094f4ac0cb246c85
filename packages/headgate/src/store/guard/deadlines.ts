import { HeadgateError } from '../../errors/headgate-error.js'
import type { Clock, Timers } from '../../time/clock.js'
import type { Source } from '../store.js'
import { settle, type Waiter } from '../waiter.js'
import type { Send } from './call.js'
import type { FirstConnection } from './remote.js'

/** How early a timer may fire by the clock that is read. */
const EARLY_MS = 1
/** The timer stays set when nothing is awaited, and keeps an idle process alive no longer than this. */
const MOST_IDLE_MS = 50

interface DeadlinesOptions {
  readonly deadlineMs: number
  readonly source: Source
  readonly clock: Clock
  readonly timers: Timers
  /** Whether a timer ends with the request that set it, so that no other request may rely on it. */
  readonly oneTimerEach?: boolean
  /** While it is being made nobody is given up. */
  readonly firstConnection?: Pick<FirstConnection, 'untilMs'> | undefined
}

/**
 * Settles whatever is waited for within the deadline, if only with the news that there is no answer. No Node client gives
 * a deadline that holds while Redis is frozen.
 *
 * Only the store's time counts, not this process's own. The time starts when the turn of the event loop in which the call
 * was made is over, because clients write to their sockets then. When it is up the sockets are read once more before
 * the call is given up: an answer that is already there only waited for a busy process.
 *
 * All calls have the same time, so they are due in the order they were made, and one timer is enough. It is not called off
 * with each answer, only to be set anew for the next call: that takes as long as all other guards together.
 */
export class Deadlines {
  readonly #options: DeadlinesOptions
  readonly #afterThisTurn: (work: () => void) => void
  /** Started in this turn of the event loop: their time has not begun. */
  #begun: TimedWaiter<unknown>[] = []
  readonly #running = new DueQueue()
  /** Those that were due while the first connection was being made. */
  readonly #held = new DueQueue()
  #callOff: (() => void) | null = null
  readonly #startBegun = (): void => this.#start()
  readonly #onTimer = (): void => this.#takeDue()

  constructor(options: DeadlinesOptions) {
    this.#options = options
    this.#afterThisTurn = options.timers.afterThisTurn ?? (work => queueMicrotask(work))
  }

  /** From now on `waiter` is settled in time. */
  begin<T>(waiter: Waiter<T>): TimedWaiter<T> {
    const timed = new TimedWaiter(this, waiter)
    this.add(timed)
    return timed
  }

  /** The same for one that may have been settled in the meantime. */
  add<T>(timed: TimedWaiter<T>): void {
    if (timed.isSettled) return
    this.#begun.push(timed as TimedWaiter<never>)
    if (this.#begun.length === 1) this.#afterThisTurn(this.#startBegun)
  }

  /** Nothing will be awaited any more. */
  stop(): void {
    this.#callOff?.()
    this.#callOff = null
  }

  /** Something that was awaited has been settled. */
  settled(): void {
    this.#running.dropSettled()
    this.#held.dropSettled()
    // Such a timer would keep the runtime of an ended request alive.
    if (this.#options.oneTimerEach && this.#running.isEmpty && this.#held.isEmpty) this.stop()
  }

  #start(): void {
    const dueMs = this.#nowMs() + this.#options.deadlineMs
    for (const timed of this.#begun) if (!timed.isSettled) this.#running.add(timed, dueMs)
    this.#begun = []
    if (this.#callOff === null || this.#options.oneTimerEach) this.#arm()
  }

  #nowMs(): number {
    return this.#options.clock.nowUs() / 1000
  }

  #arm(): void {
    const dueMs = Math.min(this.#running.firstDueMs(), this.#held.firstDueMs())
    if (dueMs === Number.POSITIVE_INFINITY) return
    const dueAfterMs = Math.max(1, Math.floor(dueMs - this.#nowMs()))
    const waitMs = this.#options.oneTimerEach ? dueAfterMs : Math.min(MOST_IDLE_MS, dueAfterMs)
    this.#callOff = this.#options.timers.after(waitMs, this.#onTimer)
  }

  #takeDue(): void {
    this.#callOff = null
    const nowMs = this.#nowMs() + EARLY_MS
    const holdMs = this.#options.firstConnection?.untilMs ?? 0
    const due = this.#held.takeDue(nowMs)
    for (const timed of this.#running.takeDue(nowMs)) {
      if (holdMs > nowMs) this.#held.add(timed, holdMs + this.#options.deadlineMs)
      else due.push(timed)
    }
    // Timers run before sockets are read.
    if (due.length > 0) this.#afterThisTurn(() => this.#giveUp(due))
    this.#arm()
  }

  #giveUp(due: readonly TimedWaiter<unknown>[]): void {
    const { source, deadlineMs } = this.#options
    for (const timed of due) timed.failed(timeout(source, deadlineMs))
  }
}

/**
 * Settles every call within the deadline. One that missed it may still be executed: it is neither sent again nor
 * taken back.
 */
export function withDeadline(next: Send, deadlines: Deadlines): Send {
  return (call, waiter) => {
    const timed = new TimedWaiter(deadlines, waiter)
    // Before its time is set up: clients write to their sockets in the order in which they scheduled the end of the
    // turn.
    next(call, timed)
    deadlines.add(timed)
  }
}

/** Returns the error of a call that got no answer in time. */
function timeout(source: Source, deadlineMs: number): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_STORE_TIMEOUT', `${source}: no answer within ${deadlineMs} ms`)
}

/** A waiter that is settled in time: with the answer, a failure, or the timeout. */
export class TimedWaiter<T> implements Waiter<T> {
  dueMs = 0

  constructor(
    readonly deadlines: Deadlines,
    /** Null once it has been settled. */
    private waiter: Waiter<T> | null,
  ) {}

  get isSettled(): boolean {
    return this.waiter === null
  }

  answered(value: T): void {
    const { waiter } = this
    if (waiter === null) return
    this.end()
    settle(waiter, value)
  }

  failed(error: unknown): void {
    const { waiter } = this
    if (waiter === null) return
    this.end()
    waiter.failed(error)
  }

  /** Nobody waits for it any more. */
  private end(): void {
    this.waiter = null
    this.deadlines.settled()
  }
}

/** Waiters in the order they are due. Settled ones leave when they reach the front. */
class DueQueue {
  #waiters: TimedWaiter<unknown>[] = []
  #front = 0

  get isEmpty(): boolean {
    return this.#front === this.#waiters.length
  }

  add(waiter: TimedWaiter<unknown>, dueMs: number): void {
    waiter.dueMs = dueMs
    this.#waiters.push(waiter)
  }

  firstDueMs(): number {
    return this.#waiters[this.#front]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  dropSettled(): void {
    while (this.#waiters[this.#front]?.isSettled) this.#dropFirst()
  }

  takeDue(nowMs: number): TimedWaiter<unknown>[] {
    const due: TimedWaiter<unknown>[] = []
    this.dropSettled()
    while (this.firstDueMs() <= nowMs) {
      due.push(this.#waiters[this.#front] as TimedWaiter<unknown>)
      this.#dropFirst()
      this.dropSettled()
    }
    return due
  }

  /** Drops settled waiters when they are half of the queue, so that each waiter is moved at most once. */
  #dropFirst(): void {
    this.#front++
    if (this.#front === this.#waiters.length) {
      this.#waiters.length = 0
      this.#front = 0
      return
    }
    if (this.#front * 2 < this.#waiters.length || this.#front < 64) return
    this.#waiters.splice(0, this.#front)
    this.#front = 0
  }
}
