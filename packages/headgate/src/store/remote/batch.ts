import type { PendingCheck } from '../../check/pending-check.js'
import type { Timers } from '../../time/clock.js'
import type { AskedAt } from './deny-cache.js'

/** The checks of one call, while it is being put together. */
export interface Batch {
  readonly isPeek: boolean
  /** The time a test gives to its checks, or ''. */
  readonly testTime: string
  /** For the denials among its answers. */
  readonly askedAt: AskedAt | null
  readonly checks: PendingCheck[]
  /** Limits of all checks together: what the call costs the server. */
  size: number
}

export interface BatchesOptions {
  /** The most limits per call, so that no call holds the server up for long. */
  readonly maxChecks: number
  readonly timers: Timers
  /** Checks of one key can share a call. */
  keyOf(check: PendingCheck): number
  /** The time a test gives to a check; checks of different times cannot share a call. */
  testTime(): string
  askedAt(): AskedAt | null
  /** Whether calls are in flight. */
  isBusy(): boolean
  send(batch: Batch): void
}

/**
 * Checks made in the same turn of the event loop travel as one call. An interpreter that is entered once for sixty checks,
 * one reading of the server's clock and one packet cost a fraction of sixty. Nothing waits for a timer: a check made
 * while nothing is in flight leaves as soon as the code that made it is done, or at once if the last call had one check.
 *
 * Invariant: checks of one batch key leave in the order they were made.
 */
export class Batches {
  private readonly open = new Map<number, Batch>()
  private isScheduled = false
  /** The checks of the last call. */
  private lastCount = 0
  private readonly afterThisCode: (work: () => void) => void
  private readonly afterThisTurn: (work: () => void) => void
  private readonly flushLater = (): void => {
    this.isScheduled = false
    this.flush()
  }

  constructor(private readonly options: BatchesOptions) {
    this.afterThisCode = options.timers.afterThisCode ?? queueMicrotask
    this.afterThisTurn = options.timers.afterThisTurn ?? queueMicrotask
  }

  add(check: PendingCheck): void {
    const { isPeek } = check
    const key = this.options.keyOf(check)
    const testTime = this.options.testTime()
    let batch = this.open.get(key)
    if (batch !== undefined && (batch.isPeek !== isPeek || batch.testTime !== testTime)) {
      this.send(key, batch)
      batch = undefined
    }
    if (batch === undefined) {
      batch = { isPeek, testTime, askedAt: this.options.askedAt(), checks: [], size: 0 }
      this.open.set(key, batch)
    }
    batch.checks.push(check)
    batch.size += Math.max(1, check.asked.limits.length)
    if (batch.size >= this.options.maxChecks || this.mayLeaveNow()) this.send(key, batch)
    else if (!this.isScheduled) this.schedule()
  }

  /** Sends what there is. */
  flush(): void {
    for (const [key, batch] of this.open) this.send(key, batch)
  }

  /** Callers that ask one by one wait for nobody: nothing is in flight, and the last call had room for others in vain. */
  private mayLeaveNow(): boolean {
    return this.lastCount === 1 && this.open.size === 1 && !this.options.isBusy()
  }

  private send(key: number, batch: Batch): void {
    this.open.delete(key)
    this.lastCount = batch.checks.length
    this.options.send(batch)
  }

  /** While calls are in flight, the next one may as well take what other sockets of this turn bring. */
  private schedule(): void {
    this.isScheduled = true
    if (this.options.isBusy()) this.afterThisTurn(this.flushLater)
    else this.afterThisCode(this.flushLater)
  }
}
