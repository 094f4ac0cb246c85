import type { Answer, Check, FailureMode, Question, Refund, Renewal } from '../engine/question.js'
import type { Statistics } from '../observe/statistics/statistics.js'
import type { Clock } from '../time/clock.js'
import type { ControlStore } from './control-store.js'

/** A value now, or a promise of it where the store is not in this process. */
export type Eventually<T> = T | Promise<T>

/**
 * Where limits are kept and decided. Everything between a limiter and its state is one of these, also the guards
 * around another store. A denial is an answer; only a malfunction throws or rejects.
 */
export interface Store {
  /** Where the decisions come from, as `decision.source` says it. */
  readonly source: Source
  /** The clock the store decides by, where that is in this process. */
  readonly clock?: Clock
  /** Where operators' switches and overrides are kept. Left out: in the process that asks. */
  readonly control?: ControlStore
  /** Where the decisions of limiters and gates on it are counted. */
  readonly statistics?: Statistics
  /** The failure mode of questions that do not name one. Left out: the store throws or rejects. */
  readonly onStoreFailure?: FailureMode
  /** Charges the first alternative that fits, whole, and says what it found. */
  decide(question: Question): Eventually<Answer>
  /** Answers as `decide` would and changes nothing. */
  peek(question: Question): Eventually<Answer>
  /** Takes charges back as far as they still count; returns the units given back, in order. */
  refund(refunds: readonly Refund[]): Eventually<readonly number[]>
  /** Holds places for another while; returns whether each is held. Left out: they expire. */
  renew?(renewals: readonly Renewal[]): Eventually<readonly boolean[]>
  /** Forgets what the checks' subjects have used. */
  reset(checks: readonly Check[]): Eventually<void>
  /**
   * Work that was begun for a question and is not over, such as a call that missed its deadline; null when there is
   * none.
   */
  underWay?(): Promise<unknown> | null
  /** Gives back what the store holds open. Afterwards it must not be asked again. */
  close(): Eventually<void>
}

/**
 * The decider: a shared store, this process alone, the failure mode, or nobody: `none` for a request that nothing
 * limits or that the policy file skips.
 */
export type Source = 'redis' | 'memory' | FailureMode | 'none'
