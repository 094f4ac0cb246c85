import { decideOn } from '../decision/decide-on.js'
import { Decision, type DecisionContext } from '../decision/decision.js'
import type { Answer, Question } from '../engine/question.js'
import { keepV8Shape } from '../fast-path/keep-v8-shape.js'
import type { Recorder } from '../observe/statistics/recorder.js'
import type { DecidedPolicy, Policy } from '../policy/policies.js'
import { LazyPromise, type Waiter } from '../store/waiter.js'

/** Turns the answer of an asynchronous store into the decision that the caller awaits. */
export class PendingDecision extends LazyPromise<Decision> implements Waiter<Answer> {
  private decided: Decision | null = null
  readonly beganUs: number
  readonly labels: Readonly<Record<string, string>> | null

  constructor(
    readonly question: Question,
    readonly policy: Policy | DecidedPolicy,
    readonly cost: number,
    readonly context: DecisionContext,
    /** Called with the answer before the caller gets it. */
    readonly onAnswer: ((question: Question, answer: Answer) => void) | null = null,
    /** Where it is counted; null if it is not. */
    readonly recorder: Recorder | null = null,
  ) {
    super()
    this.beganUs = recorder === null ? 0 : recorder.begin(context.source !== 'memory')
    this.labels = recorder === null ? null : recorder.labels()
  }

  /** Returns the decision on a synchronous answer, or else a promise of what the waiter is or will be told. */
  on(answer: Answer | null): Decision | Promise<Decision> {
    return answer === null ? (this.decided ?? this.promise) : this.decide(answer, true)
  }

  answered(answer: Answer): void {
    try {
      this.decided = this.decide(answer, false)
      this.resolve(this.decided)
    } catch (error) {
      this.reject(error)
    }
  }

  private decide(answer: Answer, isImmediate: boolean): Decision {
    this.onAnswer?.(this.question, answer)
    const decision = decideOn(this.question, answer, this.policy, this.cost, this.context)
    if (this.recorder !== null) {
      const atUs = Decision.atUsOf(decision)
      const source = answer.source ?? this.context.source
      this.recorder.decided(this, { answer, decision, atUs, isImmediate }, source)
    }
    return decision
  }

  failed(error: unknown): void {
    this.reject(error)
  }
}

keepV8Shape(
  new PendingDecision({ alternatives: [], shadow: [] }, { name: '', tier: null, limits: [] }, 1, {
    clock: { nowUs: () => 0, unixMs: () => 0 },
    source: 'memory',
  }),
)
