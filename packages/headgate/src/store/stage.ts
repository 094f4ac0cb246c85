/**
 * Everything between a limiter and its state is a stage, and each is given the next one. A question may have to
 * wait at several of them. A promise at each would cost half a dozen per decision, so a stage passes a waiter on,
 * and the only promise is the caller's.
 */
import type { Limit } from '../algorithms/algorithm.js'
import type { Answer, Check, Question, Refund, Renewal } from '../engine/question.js'
import type { IsOwnName, OneUnit } from '../fast-path/single-limit-policy.js'
import type { Eventually, Source, Store } from './store.js'
import { LazyPromise, settleWith, type Waiter } from './waiter.js'

/** `decide` charges; `peek` only looks. */
export type Action = 'decide' | 'peek'

/** A step on the way to the state, or the state itself. */
export interface Stage {
  /** Where the decisions come from, as in `decision.source`. */
  readonly source: Source
  /**
   * Returns the answer if it is known synchronously. Otherwise returns null, and `waiter` gets it, now or later.
   */
  ask(action: Action, question: Question, waiter: Waiter<Answer>): Answer | null
  /** Takes charges back as far as they still count; returns the units given back, in order. */
  refund(refunds: readonly Refund[]): Eventually<readonly number[]>
  /** Renews places; returns whether each is held. */
  renew(renewals: readonly Renewal[]): Eventually<readonly boolean[]>
  /** Forgets what the checks' subjects have used. */
  reset(checks: readonly Check[]): Eventually<void>
  /** Finishes what is in flight and releases what is held open. It must not be asked afterwards. */
  close(): Eventually<void>
  /**
   * Returns the fast path for one unit of a limit in the scope `global`, if the stage has one: looked up once, used
   * many times.
   */
  oneUnit?(name: string, limit: Limit, isOwnName: IsOwnName): OneUnit
}

/** Returns the stage a store was made of; any other store is asked through its own methods. */
export function toStage(store: Store): Stage {
  return StageStore.stageOf(store) ?? stageOfMethods(store)
}

/** Returns the store that answers through this stage, with `rest` beside or in place of its methods. */
export function toStore<Rest extends object>(stage: Stage, rest: Rest): Store & Rest {
  const store: Store = new StageStore(stage)
  return Object.defineProperties(store, Object.getOwnPropertyDescriptors(rest)) as Store & Rest
}

/**
 * A store that knows its stage. Only this very object does: a copy with another method has none and is asked
 * through that method, so that nothing bypasses the change.
 */
class StageStore implements Store {
  readonly #stage: Stage
  readonly source: Source
  readonly decide: Store['decide']
  readonly peek: Store['peek']
  readonly refund: Store['refund']
  readonly renew: NonNullable<Store['renew']>
  readonly reset: Store['reset']
  readonly close: Store['close']

  constructor(stage: Stage) {
    this.#stage = stage
    this.source = stage.source
    this.decide = question => promiseAnswer(stage, 'decide', question)
    this.peek = question => promiseAnswer(stage, 'peek', question)
    this.refund = refunds => stage.refund(refunds)
    this.renew = renewals => stage.renew(renewals)
    this.reset = checks => stage.reset(checks)
    this.close = () => stage.close()
  }

  static stageOf(store: Store): Stage | undefined {
    return #stage in store ? store.#stage : undefined
  }
}

/** Asks a stage, for callers that wait with a promise. */
export function promiseAnswer(stage: Stage, action: Action, question: Question): Eventually<Answer> {
  const answer = new PendingAnswer()
  return stage.ask(action, question, answer) ?? answer.promise
}

class PendingAnswer extends LazyPromise<Answer> implements Waiter<Answer> {
  answered(answer: Answer): void {
    this.resolve(answer)
  }

  failed(error: unknown): void {
    this.reject(error)
  }
}

function stageOfMethods(store: Store): Stage {
  return {
    source: store.source,
    ask(action, question, waiter) {
      try {
        const answer = store[action](question)
        if (!('then' in answer)) return answer
        settleWith(waiter, answer)
      } catch (error) {
        waiter.failed(error)
      }
      return null
    },
    refund: refunds => store.refund(refunds),
    renew: renewals => store.renew?.(renewals) ?? renewals.map(() => false),
    reset: checks => store.reset(checks),
    close: () => store.close(),
  }
}
