/** Mode `compare`: this process decides, and the store is asked as well, to see whether the two agree. */

import { decideOn } from '../decision/decide-on.js'
import { Decision, type DecisionContext } from '../decision/decision.js'
import type { Answer, Check, Question, Refund } from '../engine/question.js'
import { PendingDecision } from '../limiter/pending-decision.js'
import { createPlaces } from '../limiter/places.js'
import { createRefunds, type RefundOptions } from '../limiter/refunds.js'
import type { Recorder } from '../observe/statistics/recorder.js'
import type { DecidedPolicy } from '../policy/policies.js'
import { memoryStore } from '../store/memory/memory-store.js'
import { type Action, promiseAnswer, type Stage, toStage } from '../store/stage.js'
import { type Clock, systemTimers } from '../time/clock.js'

export interface ComparisonOptions {
  readonly clock: Clock
  /** The store to compare with, and its decisions. */
  readonly stage: Stage
  readonly context: DecisionContext
  /** Where the decisions of this process are counted. */
  readonly recorder: Recorder | null
  /** Called with the store's answers, before they are compared. */
  onAnswer(question: Question, answer: Answer): void
  onDivergence(): void
  /** Called when places of this process have been given back. */
  onFreed(places: readonly Refund[]): void
  /** Whether the store is closed for a settlement. */
  isTooLate(): boolean
  warn(message: string): void
}

export interface Comparison {
  decide(action: Action, question: Question, policy: DecidedPolicy, cost: number): Decision
  /** Gives back what was charged here and in the store; null for a decision that was not made here. */
  refund(decision: Decision, units?: number | RefundOptions): Promise<number> | null
  /** The same for units that were charged before the store had answered. */
  settle(decision: Decision, actual: number): Promise<void> | null
  reset(checks: readonly Check[]): void
  close(): Promise<void>
}

export function createComparison(options: ComparisonOptions): Comparison {
  const { clock, stage, context, onAnswer, onDivergence, warn } = options
  /** Decides as if there were no other process. */
  const local = memoryStore({ clock })
  const places = createPlaces(toStage(local), { clock, timers: systemTimers, onFreed: options.onFreed })
  const localContext = { clock, source: local.source, places }
  const beside = createRefunds(stage, options.isTooLate)
  const here = createRefunds(toStage(local))
  /** The store's decision for each decision of this process, if it charged. */
  const decidedBeside = new WeakMap<Decision, Promise<Decision | null>>()

  /**
   * Runs in the background, because the request has its decision. Only the store's own answers are compared, not
   * its fallback's.
   */
  function compareBeside(question: Question, decided: Answer): Promise<Answer | null> {
    const compare = (answer: Answer) => {
      onAnswer(question, answer)
      if (answer.source !== undefined) return null
      if (answer.charged >= 0 !== decided.charged >= 0) onDivergence()
      return answer
    }
    const failed = (error: unknown) => {
      warn(`compare: the store could not be asked: ${(error as Error).message}`)
      return null
    }
    return Promise.resolve()
      .then(() => promiseAnswer(stage, 'decide', question))
      .then(compare, failed)
  }

  /** For when the decision is refunded or released. */
  function keepBeside(decision: Decision, beside: Promise<Decision | null>): void {
    decidedBeside.set(decision, beside)
    if (decision.isHeld) Decision.releaseWith(decision, beside)
    else void beside.then(decided => decided?.release())
  }

  /** Refunds both, so that the two stay comparable. */
  async function refundBoth(
    decision: Decision,
    decided: Promise<Decision | null>,
    units?: number | RefundOptions,
  ) {
    const given = await here.refund(decision, units)
    const charged = await decided
    if (charged !== null) await beside.refund(charged, units)
    return given
  }

  async function settleBoth(decision: Decision, decided: Promise<Decision | null>, actual: number) {
    await here.settle(decision, actual)
    const charged = await decided
    if (charged !== null) await beside.settle(charged, actual)
  }

  return {
    decide(action, question, policy, cost) {
      const counted = action === 'decide' ? options.recorder : null
      const late = new PendingDecision(question, policy, cost, localContext, null, counted)
      const answer = local[action](question) as Answer
      const decision = late.on(answer) as Decision
      const charged = (beside: Answer | null) =>
        beside === null || beside.charged < 0 ? null : decideOn(question, beside, policy, cost, context)
      if (action === 'decide') keepBeside(decision, compareBeside(question, answer).then(charged))
      return decision
    },
    refund(decision, units) {
      const decided = decidedBeside.get(decision)
      return decided === undefined ? null : refundBoth(decision, decided, units)
    },
    settle(decision, actual) {
      const decided = decidedBeside.get(decision)
      return decided === undefined ? null : settleBoth(decision, decided, actual)
    },
    reset(checks) {
      local.reset(checks)
    },
    close: places.close,
  }
}
