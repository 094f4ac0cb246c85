import type { Answer, FailureMode, Question } from '../../engine/question.js'
import { onlyCheckOf } from '../../engine/single-question.js'
import { isHeadgateError } from '../../errors/headgate-error.js'
import type { Action, Stage } from '../stage.js'
import type { Eventually } from '../store.js'
import { settle, type Waiter } from '../waiter.js'
import { isStoreFailure } from './failure.js'
import type { OnGuardEvent } from './guard-event.js'
import type { LocalShare } from './local-share.js'

export interface FallbackOptions {
  /** For questions that do not set their own. */
  readonly mode: FailureMode
  readonly local: LocalShare
  readonly onEvent: OnGuardEvent
}

/**
 * Gives every request a decision: if the store fails, its failure mode decides. Only the caller's own mistakes are
 * still errors. A call with an unknown outcome is neither repeated nor taken back.
 */
export function withFallback(next: Stage, options: FallbackOptions): Stage {
  const { local, onEvent } = options

  /** Waits for the store's answer, or decides without it. */
  class Fallback implements Waiter<Answer> {
    constructor(
      readonly action: Action,
      readonly question: Question,
      readonly waiter: Waiter<Answer>,
    ) {}

    answered(answer: Answer): void {
      local.remember(this.question, answer)
      this.waiter.answered(answer)
    }

    failed(error: unknown): void {
      const { action, question, waiter } = this
      try {
        if (!isStoreFailure(error)) throw error
        failure(error)
        settle(waiter, withoutStore(question, action))
      } catch (fault) {
        waiter.failed(fault)
      }
    }
  }

  function failure(error: unknown): void {
    onEvent({ type: 'failure', code: codeOf(error), message: error instanceof Error ? error.message : '' })
  }

  function withoutStore(question: Question, action: Action): Answer {
    const mode = bindsNobody(question) ? 'local' : (question.onStoreFailure ?? options.mode)
    const answer = mode === 'local' ? local[action](question) : unlooked(mode)
    if (action === 'decide') onEvent({ type: 'fallback', mode, allowed: answer.charged >= 0 })
    return answer
  }

  /** A synchronous answer was decided in this process and needs no fallback. */
  function askOrDecide(action: Action, question: Question, waiter: Waiter<Answer>): Answer | null {
    const fallback = new Fallback(action, question, waiter)
    try {
      return next.ask(action, question, fallback)
    } catch (error) {
      fallback.failed(error)
      return null
    }
  }

  /** If the store fails it is unknown whether it was done, and repeating it might give back twice. */
  async function orNone<Result>(work: () => Eventually<readonly Result[]>, none: () => readonly Result[]) {
    try {
      return await work()
    } catch (error) {
      if (!isStoreFailure(error)) throw error
      failure(error)
      return none()
    }
  }

  const refundInStore: Stage['refund'] = refunds =>
    orNone(
      () => next.refund(refunds),
      () => refunds.map(() => 0),
    )
  const renewInStore: Stage['renew'] = renewals =>
    orNone(
      () => next.renew(renewals),
      () => renewals.map(() => false),
    )

  return {
    source: next.source,
    ask: askOrDecide,
    async refund(refunds) {
      return refunds.some(isHere) ? apart(refunds, local.refund, refundInStore) : refundInStore(refunds)
    },
    async renew(renewals) {
      return renewals.some(isHere) ? apart(renewals, local.renew, renewInStore) : renewInStore(renewals)
    },
    reset: next.reset,
    close: next.close,
  }
}

/** Whether every limit of a question is in shadow, so that no failure may deny it: they are counted in this process. */
function bindsNobody(question: Question): boolean {
  return onlyCheckOf(question) === null && question.alternatives.some(checks => checks.length === 0)
}

function isHere({ isLocal }: { readonly isLocal?: boolean }): boolean {
  return isLocal === true
}

/**
 * Passes what this process holds by itself to `here` and the rest to `there`, and keeps the order of the results.
 */
async function apart<Item extends { readonly isLocal?: boolean }, Result>(
  items: readonly Item[],
  here: (items: readonly Item[]) => readonly Result[],
  there: (items: readonly Item[]) => Eventually<readonly Result[]>,
): Promise<readonly Result[]> {
  const ofHere = here(items.filter(isHere))
  const elsewhere = items.filter(item => !isHere(item))
  const ofThere = elsewhere.length === 0 ? [] : await there(elsewhere)
  const [hereOnes, thereOnes] = [ofHere.values(), ofThere.values()]
  return items.map(item => (isHere(item) ? hereOnes : thereOnes).next().value as Result)
}

/** Returns an answer without verdicts, because no limit was looked at. */
function unlooked(mode: 'open' | 'closed'): Answer {
  return { charged: mode === 'open' ? 0 : -1, verdicts: [[]], shadow: [], source: mode }
}

function codeOf(error: unknown): string {
  return isHeadgateError(error) ? error.code : 'unknown'
}
