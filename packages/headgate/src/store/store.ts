import type { Clock } from '../clock.js'
import type { Answer, Check, Question, Refund } from '../engine/question.js'
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
  /** What decides for questions that do not say it themselves when the store cannot. Left out: it throws or rejects. */
  readonly onStoreFailure?: 'local' | 'open' | 'closed'
  /** Charges the first alternative that fits, whole, and says what it found. */
  decide(question: Question): Eventually<Answer>
  /** Answers as `decide` would and changes nothing. */
  peek(question: Question): Eventually<Answer>
  /** Takes charges back as far as they still count; returns the units given back, in order. */
  refund(refunds: readonly Refund[]): Eventually<readonly number[]>
  /** Forgets what the checks' subjects have used. */
  reset(checks: readonly Check[]): Eventually<void>
  /** Gives back what the store holds open. Afterwards it must not be asked again. */
  close(): Eventually<void>
}

/** Who decided: a shared store, this process alone, or nobody (the failure mode). */
export type Source = 'redis' | 'memory' | 'local' | 'open' | 'closed'
