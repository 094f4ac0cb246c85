import type { Check, Credit, Credited, DecisionSource, FailureMode, Refund, Renewal } from '../check/check.js'
import type { PendingCheck } from '../check/pending-check.js'
import type { Statistics } from '../observe/statistics/statistics.js'
import type { Clock } from '../time/clock.js'
import type { ControlStore } from './control-store.js'

/** A value now, or a promise of it if the store is not in this process. */
export type MaybePromise<T> = T | Promise<T>

/** Where a limiter has its store, for parts of the library that share more through it than limits. */
export const STORE: unique symbol = Symbol.for('headgate.store')

/** Where limits are kept and decided. A denial is a result; only a malfunction throws or rejects. */
export interface Store {
  /** Where the decisions come from, as in `decision.source`. */
  readonly source: DecisionSource
  /** The clock the store decides by, if the store is in this process: that of `check.atUs`. */
  readonly clock?: Clock
  /** Where operators' switches and overrides are kept. Default: in the process that asks. */
  readonly control?: ControlStore
  /** Where the decisions of limiters on it are counted. */
  readonly statistics?: Statistics
  /** The failure mode of checks that do not name one. Without it, the store throws or rejects. */
  readonly onStoreFailure?: FailureMode
  /**
   * Charges the first alternative of the plan all of whose limits fit, unless it is a peek; writes the numbers of every limit
   * looked at and of the shadow limits into the check (`check.set`), the alternative into `check.charged`, and calls
   * `check.settle(source)`, now or later. A store of your own may return a promise instead: the limiter settles the check
   * when it is fulfilled.
   */
  decide(check: PendingCheck): void | Promise<void>
  /**
   * Takes charges back as far as they still count, or charges more (`Refund.units` below 0). Returns what `Algorithm.refund` does,
   * in order: the units given back, or the level of a ban that strikes have begun.
   */
  refund(refunds: readonly Refund[]): MaybePromise<readonly number[]>
  /** Renews permits; returns whether each is held. If left out, they expire. */
  renew?(renewals: readonly Renewal[]): MaybePromise<readonly boolean[]>
  /** Adds units to a quota, once for each id, and tells what was used. If left out, there are no credits. */
  credit?(credit: Credit): MaybePromise<Credited>
  /** Forgets what the checks' subjects have used. */
  reset(checks: readonly Check[]): MaybePromise<void>
  /** Called when the policies of a limiter on it have changed. */
  policiesChanged?(): void
  /** Returns unfinished work, such as a call that missed its deadline; null if there is none. */
  pending?(): Promise<unknown> | null
  /** Releases what the store holds open. It must not be asked afterwards. */
  close(): MaybePromise<void>
}
