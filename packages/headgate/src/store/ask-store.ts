import { NOT_CHARGED } from '../algorithms/algorithm.js'
import type { Check, DecisionSource } from '../check/check.js'
import type { PendingCheck } from '../check/pending-check.js'
import { NOBODY_LISTENS } from '../check/plan.js'
import { Plans, type Question } from '../check/plans.js'
import { systemClock } from '../time/clock.js'
import type { MaybePromise, Store } from './store.js'

export type { Question } from '../check/plans.js'

/** The answer to one check. */
export interface Verdict {
  /** Whether this check by itself had room. */
  readonly allowed: boolean
  /** Units left, after the charge if it was made. */
  readonly remaining: number
  /** 0 if allowed; Infinity for a cost above the capacity. */
  readonly retryAfterUs: number
  readonly resetAfterUs: number
  /** The store's time at which the charge counts; null if nothing was charged. */
  readonly chargedAtUs: number | null
}

/** The answer to a question: verdicts in the question's order, for the alternatives that were looked at. */
export interface Answer {
  /** The index of the charged alternative, or −1 if denied. */
  readonly charged: number
  readonly verdicts: readonly (readonly Verdict[])[]
  readonly shadow: readonly Verdict[]
  /** Whether it was decided from units leased by this process. */
  readonly leased?: boolean
  /** The decider, if not the store. */
  readonly source?: DecisionSource
}

const plans = new Plans(NOBODY_LISTENS)

/** Has a store decide a check, which is settled then or later, also for a store that returns a promise. */
export function decideBy(store: Store, check: PendingCheck): PendingCheck {
  const work = store.decide(check)
  if (work !== undefined) {
    work.then(
      () => check.settle(store.source),
      error => check.fail(error),
    )
  }
  return check
}

/** Asks a store a question given as plain data. */
export function checkBy(store: Store, question: Question, isPeek = false): PendingCheck {
  const check = plans.pending(question, { isPeek })
  check.atUs = (store.clock ?? systemClock).nowUs()
  return decideBy(store, check)
}

/** The same, with the answer as plain data. */
export function askStore(store: Store, question: Question, isPeek = false): MaybePromise<Answer> {
  const check = checkBy(store, question, isPeek)
  if (check.source !== null) return answerOf(check, store, question)
  return new Promise((resolve, reject) => {
    check.onSettled({ settled: () => resolve(answerOf(check, store, question)), failed: reject })
  })
}

function answerOf(check: PendingCheck, store: Store, { alternatives, shadow }: Question): Answer {
  const { charged, source } = check
  const isUnlooked = check.isUnlooked
  let at = 0
  const verdictsOf = (checks: readonly Check[]): Verdict[] =>
    isUnlooked ? [] : checks.map(() => verdictOf(check, at++))
  const looked = charged < 0 ? alternatives : alternatives.slice(0, charged + 1)
  const verdicts = isUnlooked ? [[]] : looked.map(verdictsOf)
  at = check.plan.shadowFrom
  return {
    charged,
    verdicts,
    shadow: verdictsOf(shadow),
    ...(check.isLeased && { leased: true }),
    ...(source !== null && source !== store.source && { source }),
  }
}

function verdictOf(check: PendingCheck, index: number): Verdict {
  const retryAfterUs = check.wait(index)
  const chargedAtUs = check.chargedAt(index)
  return {
    allowed: retryAfterUs === 0,
    remaining: check.left(index),
    retryAfterUs,
    resetAfterUs: check.resetAfter(index),
    chargedAtUs: chargedAtUs === NOT_CHARGED ? null : chargedAtUs,
  }
}
