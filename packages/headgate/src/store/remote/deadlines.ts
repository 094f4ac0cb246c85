import type { Clock, Timers } from '../../time/clock.js'
import type { FirstConnection } from './remote.js'

/** How early a timer may fire by the clock that is read. */
const EARLY_MS = 1
/** The timer stays set when nothing is awaited, and keeps an idle process alive no longer than this. */
const MOST_IDLE_MS = 50

/** Something that must be over in time: a call, or a check that waits for one. */
export interface Timed {
  dueMs: number
  readonly isOver: boolean
  /** Ends it without an answer. */
  giveUp(): void
}

export interface DeadlinesOptions {
  readonly deadlineMs: number
  readonly clock: Clock
  readonly timers: Timers
  /** Whether a timer ends with the request that set it, so that no other request may rely on it. */
  readonly oneTimerEach: boolean
  /** While it is being made nothing is given up. */
  readonly firstConnection: Pick<FirstConnection, 'untilMs'> | undefined
}

/**
 * Gives up whatever has no answer within the deadline. No Node client has a deadline that holds while Redis is frozen.
 *
 * Only the store's time counts, not this process's own. The time starts when the turn of the event loop in which the call
 * was made is over, because clients write to their sockets then. When it is up the sockets are read once more before
 * the call is given up: an answer that is already there only waited for a busy process.
 *
 * All have the same time, so they are due in the order they were made, and one timer is enough. It is not cancelled with
 * each answer, only to be set again for the next call: that takes as long as all other guards together.
 */
export class Deadlines {
  readonly #options: DeadlinesOptions
  readonly #afterThisTurn: (work: () => void) => void
  /** Started in this turn of the event loop: their time has not begun. */
  #begun: Timed[] = []
  readonly #running = new DueQueue()
  /** Those that were due while the first connection was being made. */
  readonly #held = new DueQueue()
  #cancel: (() => void) | null = null
  readonly #startBegun = (): void => this.#start()
  readonly #onTimer = (): void => this.#takeDue()

  constructor(options: DeadlinesOptions) {
    this.#options = options
    this.#afterThisTurn = options.timers.afterThisTurn ?? (work => queueMicrotask(work))
  }

  /** From now on it is over in time. */
  watch(timed: Timed): void {
    if (timed.isOver) return
    this.#begun.push(timed)
    if (this.#begun.length === 1) this.#afterThisTurn(this.#startBegun)
  }

  /** Something that was watched is over. */
  ended(): void {
    this.#running.dropOver()
    this.#held.dropOver()
    // Such a timer would keep the runtime of an ended request alive.
    if (this.#options.oneTimerEach && this.#running.isEmpty && this.#held.isEmpty) this.stop()
  }

  /** Nothing will be awaited any more. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = null
  }

  #start(): void {
    const dueMs = this.#nowMs() + this.#options.deadlineMs
    for (const timed of this.#begun) if (!timed.isOver) this.#running.add(timed, dueMs)
    this.#begun = []
    if (this.#cancel === null || this.#options.oneTimerEach) this.#arm()
  }

  #nowMs(): number {
    return this.#options.clock.nowUs() / 1000
  }

  #arm(): void {
    const dueMs = Math.min(this.#running.firstDueMs(), this.#held.firstDueMs())
    if (dueMs === Number.POSITIVE_INFINITY) return
    const dueAfterMs = Math.max(1, Math.floor(dueMs - this.#nowMs()))
    const waitMs = this.#options.oneTimerEach ? dueAfterMs : Math.min(MOST_IDLE_MS, dueAfterMs)
    this.#cancel = this.#options.timers.after(waitMs, this.#onTimer)
  }

  #takeDue(): void {
    this.#cancel = null
    const nowMs = this.#nowMs() + EARLY_MS
    const holdMs = this.#options.firstConnection?.untilMs ?? 0
    const due = this.#held.takeDue(nowMs)
    for (const timed of this.#running.takeDue(nowMs)) {
      if (holdMs > nowMs) this.#held.add(timed, holdMs + this.#options.deadlineMs)
      else due.push(timed)
    }
    // Timers run before sockets are read.
    if (due.length > 0) {
      this.#afterThisTurn(() => {
        for (const timed of due) if (!timed.isOver) timed.giveUp()
      })
    }
    this.#arm()
  }
}

/** In the order they are due. Those that are over leave when they reach the front. */
class DueQueue {
  #queue: Timed[] = []
  #front = 0

  get isEmpty(): boolean {
    return this.#front === this.#queue.length
  }

  add(timed: Timed, dueMs: number): void {
    timed.dueMs = dueMs
    this.#queue.push(timed)
  }

  firstDueMs(): number {
    return this.#queue[this.#front]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  dropOver(): void {
    while (this.#queue[this.#front]?.isOver) this.#dropFirst()
  }

  takeDue(nowMs: number): Timed[] {
    const due: Timed[] = []
    this.dropOver()
    while (this.firstDueMs() <= nowMs) {
      due.push(this.#queue[this.#front] as Timed)
      this.#dropFirst()
      this.dropOver()
    }
    return due
  }

  /** Drops those that are over when they are half of the queue, so that each is moved at most once. */
  #dropFirst(): void {
    this.#front++
    if (this.#front === this.#queue.length) {
      this.#queue.length = 0
      this.#front = 0
      return
    }
    if (this.#front * 2 < this.#queue.length || this.#front < 64) return
    this.#queue.splice(0, this.#front)
    this.#front = 0
  }
}
