import type { Answer, Question, Refund } from '../../engine/question.js'
import { isHeadgateError } from '../../errors.js'
import type { Store } from '../store.js'
import { type How, putOf, storeWith, tell, type Waiter } from '../waiter.js'
import { type FailureMode, isStoreFailure } from './failure.js'
import type { OnGuardEvent } from './guard-event.js'
import type { LocalShare } from './local-share.js'

export interface FallbackOptions {
  /** For questions that do not say it themselves. */
  readonly mode: FailureMode
  readonly local: LocalShare
  readonly onEvent: OnGuardEvent
}

/**
 * Gives every request a decision: when the store fails, its failure mode decides. Only the caller's own mistakes are
 * still errors. A call whose outcome is not known is neither repeated nor taken back.
 */
export function withFallback(store: Store, options: FallbackOptions): Store {
  const { local, onEvent } = options
  const put = putOf(store)

  /** Waits for the store's answer, or decides without it. */
  class Fallback implements Waiter<Answer> {
    constructor(
      readonly how: How,
      readonly question: Question,
      readonly waiter: Waiter<Answer>,
    ) {}

    answered(answer: Answer): void {
      local.remember(this.question, answer)
      this.waiter.answered(answer)
    }

    failed(error: unknown): void {
      const { how, question, waiter } = this
      try {
        if (!isStoreFailure(error)) throw error
        failure(error)
        tell(waiter, withoutStore(question, how))
      } catch (fault) {
        waiter.failed(fault)
      }
    }
  }

  function failure(error: unknown): void {
    onEvent({ type: 'failure', code: codeOf(error), message: error instanceof Error ? error.message : '' })
  }

  function withoutStore(question: Question, how: How): Answer {
    const mode = question.onStoreFailure ?? options.mode
    const answer = mode === 'local' ? local[how](question) : unlooked(mode)
    if (how === 'decide') onEvent({ type: 'fallback', mode, allowed: answer.charged >= 0 })
    return answer
  }

  /** What was decided in this process at once needs no store to fall back from. */
  function putOrDecide(how: How, question: Question, waiter: Waiter<Answer>): Answer | null {
    const fallback = new Fallback(how, question, waiter)
    try {
      return put(how, question, fallback)
    } catch (error) {
      fallback.failed(error)
      return null
    }
  }

  return storeWith(putOrDecide, {
    source: store.source,
    async refund(refunds: readonly Refund[]) {
      try {
        return await store.refund(refunds)
      } catch (error) {
        if (!isStoreFailure(error)) throw error
        // Whether it was given back is not known, and trying again might give it back twice.
        failure(error)
        return refunds.map(() => 0)
      }
    },
    reset: store.reset,
    close: store.close,
  })
}

/** An answer that looked at no limit: it has no verdicts to tell. */
function unlooked(mode: 'open' | 'closed'): Answer {
  return { charged: mode === 'open' ? 0 : -1, verdicts: [[]], shadow: [], source: mode }
}

function codeOf(error: unknown): string {
  return isHeadgateError(error) ? error.code : 'unknown'
}
