import type { Answer, Question } from '../../engine/question.js'
import { isHeadgateError } from '../../errors.js'
import type { Eventually, Store } from '../store.js'
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

  /** What was decided in this process needs no store to fall back from. */
  function ask(question: Question, how: 'decide' | 'peek'): Eventually<Answer> {
    const answer = store[how](question)
    return answer instanceof Promise ? askLater(question, how, answer) : answer
  }

  async function askLater(
    question: Question,
    how: 'decide' | 'peek',
    asked: Promise<Answer>,
  ): Promise<Answer> {
    try {
      const answer = await asked
      local.remember(question, answer)
      return answer
    } catch (error) {
      if (!isStoreFailure(error)) throw error
      onEvent({ type: 'failure', code: codeOf(error), message: error instanceof Error ? error.message : '' })
      return withoutStore(question, how)
    }
  }

  function withoutStore(question: Question, how: 'decide' | 'peek'): Answer {
    const mode = question.onStoreFailure ?? options.mode
    const answer = mode === 'local' ? local[how](question) : unlooked(mode)
    if (how === 'decide') onEvent({ type: 'fallback', mode, allowed: answer.charged >= 0 })
    return answer
  }

  return {
    source: store.source,
    decide: question => ask(question, 'decide'),
    peek: question => ask(question, 'peek'),
    async refund(refunds) {
      try {
        return await store.refund(refunds)
      } catch (error) {
        if (!isStoreFailure(error)) throw error
        // Whether it was given back is not known, and trying again might give it back twice.
        onEvent({
          type: 'failure',
          code: codeOf(error),
          message: error instanceof Error ? error.message : '',
        })
        return refunds.map(() => 0)
      }
    },
    reset: checks => store.reset(checks),
    close: () => store.close(),
  }
}

/** An answer that looked at no limit: it has no verdicts to tell. */
function unlooked(mode: 'open' | 'closed'): Answer {
  return { charged: mode === 'open' ? 0 : -1, verdicts: [[]], shadow: [], source: mode }
}

function codeOf(error: unknown): string {
  return isHeadgateError(error) ? error.code : 'unknown'
}
