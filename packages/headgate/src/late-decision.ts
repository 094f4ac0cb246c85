import { Decision, type DecisionContext } from './decision/decision.js'
import { keepShape } from './engine/keep-shape.js'
import type { Answer, Question } from './engine/question.js'
import type { DecidedPolicy, Policy } from './policy/policies.js'
import { Late, type Waiter } from './store/waiter.js'

/** Turns the answer of a store that takes its time into the decision that the caller waits for. */
export class LateDecision extends Late<Decision> implements Waiter<Answer> {
  constructor(
    readonly question: Question,
    readonly policy: Policy | DecidedPolicy,
    readonly cost: number,
    readonly context: DecisionContext,
    /** Told of the answer before the caller is. */
    readonly onAnswer: ((question: Question, answer: Answer) => void) | null = null,
  ) {
    super()
  }

  /** The decision on an answer that was there at once. */
  now(answer: Answer): Promise<Decision> {
    this.answered(answer)
    return this.promise
  }

  answered(answer: Answer): void {
    try {
      this.onAnswer?.(this.question, answer)
      this.resolve(Decision.on(this.question, answer, this.policy, this.cost, this.context))
    } catch (error) {
      this.reject(error)
    }
  }

  failed(error: unknown): void {
    this.reject(error)
  }
}

keepShape(
  new LateDecision({ alternatives: [], shadow: [] }, { name: '', tier: null, limits: [] }, 1, {
    clock: { nowUs: () => 0, unixMs: () => 0 },
    source: 'memory',
  }),
)
