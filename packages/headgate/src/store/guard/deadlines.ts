import type { Clock, Timers } from '../../clock.js'
import type { HeadgateError } from '../../errors.js'
import { tell, type Waiter } from '../waiter.js'

/** A timer this late means that the event loop was busy, not that the store was slow. */
const LATE_MS = 5
const EARLY_MS = 1
/** What a call then still gets: the request may only just have been sent. */
const GRACE_MS = 10

interface DeadlinesOptions {
  readonly deadlineMs: number
  readonly clock: Clock
  readonly timers: Timers
  /** Of a call that is given up. */
  error(): HeadgateError
}

/**
 * One timer for all calls: all have the same time, so they are due in the order they began, and the timer is that of
 * the oldest. A timer for each would cost more than the rest of the call.
 */
export class Deadlines {
  readonly #options: DeadlinesOptions
  readonly #calls = new Line()
  /** Those that got a little longer, because this process was late itself. */
  readonly #spared = new Line()
  #callOff: (() => void) | null = null

  constructor(options: DeadlinesOptions) {
    this.#options = options
  }

  /** From now on `waiter` is told within the deadline, if only that there is no answer. */
  begin<T>(waiter: Waiter<T>): Call<T> {
    const call = new Call(this, waiter)
    this.#calls.add(call, this.#nowMs() + this.#options.deadlineMs)
    if (this.#callOff === null) this.#arm()
    return call
  }

  /** A call has been settled. */
  settled(): void {
    this.#calls.dropSettled()
    this.#spared.dropSettled()
    // Nothing is left to wait for: a process that has nothing else to do may end.
    if (this.#callOff !== null && this.#calls.isEmpty && this.#spared.isEmpty) {
      this.#callOff()
      this.#callOff = null
    }
  }

  #nowMs(): number {
    return this.#options.clock.nowUs() / 1000
  }

  #arm(): void {
    const dueMs = Math.min(this.#calls.firstDueMs(), this.#spared.firstDueMs())
    if (dueMs === Number.POSITIVE_INFINITY) return
    const waitMs = Math.max(1, Math.floor(dueMs - this.#nowMs()))
    this.#callOff = this.#options.timers.after(waitMs, () => this.#giveUpDue())
  }

  #giveUpDue(): void {
    this.#callOff = null
    // A timer may fire up to a millisecond early by the clock that is read.
    const now = this.#nowMs() + EARLY_MS
    for (let call = this.#calls.takeDue(now); call !== null; call = this.#calls.takeDue(now)) {
      if (now - call.dueMs < LATE_MS) call.giveUp(this.#options.error())
      // Timers run before sockets are read: the answer may be waiting there.
      else this.#spared.add(call, now + GRACE_MS)
    }
    for (let call = this.#spared.takeDue(now); call !== null; call = this.#spared.takeDue(now)) {
      call.giveUp(this.#options.error())
    }
    // Unless somebody who was told has begun another call.
    if (this.#callOff === null) this.#arm()
  }
}

/** A call that is waited for. */
export class Call<T> implements Waiter<T> {
  dueMs = 0

  constructor(
    readonly deadlines: Deadlines,
    /** Null when it has been settled. */
    private waiter: Waiter<T> | null,
  ) {}

  get isSettled(): boolean {
    return this.waiter === null
  }

  answered(value: T): void {
    const { waiter } = this
    if (waiter === null) return
    this.end()
    tell(waiter, value)
  }

  failed(error: unknown): void {
    const { waiter } = this
    if (waiter === null) return
    this.end()
    waiter.failed(error)
  }

  /** Nobody waits for it any more. */
  end(): void {
    this.waiter = null
    this.deadlines.settled()
  }

  giveUp(error: unknown): void {
    const { waiter } = this
    this.waiter = null
    waiter?.failed(error)
  }
}

/** Calls in the order they are due. Settled ones leave when they come to the front. */
class Line {
  #calls: Call<unknown>[] = []
  #front = 0

  get isEmpty(): boolean {
    return this.#front === this.#calls.length
  }

  add(call: Call<never>, dueMs: number): void {
    call.dueMs = dueMs
    this.#calls.push(call)
  }

  firstDueMs(): number {
    return this.#calls[this.#front]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  dropSettled(): void {
    while (this.#calls[this.#front]?.isSettled) this.#next()
  }

  takeDue(nowMs: number): Call<unknown> | null {
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
