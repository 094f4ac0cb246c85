import type { Answer, Check, FailureMode, Question, Refund, Renewal } from '../engine/question.js'
import type { Statistics } from '../observe/statistics/statistics.js'
import type { Clock } from '../time/clock.js'
import type { ControlStore } from './control-store.js'

/** A value now, or a promise of it if the store is not in this process. */
export type Eventually<T> = T | Promise<T>

/** Where limits are kept and decided. A denial is an answer; only a malfunction throws or rejects. */
export interface Store {
  /** Where the decisions come from, as in `decision.source`. */
  readonly source: Source
  /** The clock the store decides by, if the store is in this process. */
  readonly clock?: Clock
  /** Where operators' switches and overrides are kept. Default: in the process that asks. */
  readonly control?: ControlStore
  /** Where the decisions of limiters and gates on it are counted. */
  readonly statistics?: Statistics
  /** The failure mode of questions that do not name one. Without it, the store throws or rejects. */
  readonly onStoreFailure?: FailureMode
  /** Charges the first alternative that fits, as a whole, and returns what it found. */
  decide(question: Question): Eventually<Answer>
  /** Answers as `decide` would and changes nothing. */
  peek(question: Question): Eventually<Answer>
  /** Takes charges back as far as they still count; returns the units given back, in order. */
  refund(refunds: readonly Refund[]): Eventually<readonly number[]>
  /** Renews places; returns whether each is held. If left out, they expire. */
  renew?(renewals: readonly Renewal[]): Eventually<readonly boolean[]>
  /** Forgets what the checks' subjects have used. */
  reset(checks: readonly Check[]): Eventually<void>
  /** Returns unfinished work of a question, such as a call that missed its deadline; null if there is none. */
  underWay?(): Promise<unknown> | null
  /** Releases what the store holds open. It must not be asked afterwards. */
  close(): Eventually<void>
}

/**
 * The decider: a shared store, this process alone, the failure mode, or nobody: `none` for a request that nothing
 * limits or that the policy file skips.
 */
export type Source = 'redis' | 'memory' | FailureMode | 'none'
