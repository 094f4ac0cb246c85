import { Decision, type DecisionContext } from './decision/decision.js'
import { toMs, toWaitMs } from './decision/limit-verdict.js'
import { Admission } from './engine/admission.js'
import type { Denial } from './engine/denial.js'
import type { Policy } from './policy/policies.js'
import type { OneUnit } from './store/short-ways.js'
import type { SubjectNamer } from './subject/subject.js'

/**
 * A policy of one limit, asked for one unit: by far the commonest question. Nothing is made for it but the decision, and
 * in a flood not even that.
 */
export class PlainPolicy {
  private readonly admission = new Admission()

  constructor(
    private readonly policy: Policy,
    private readonly oneUnit: OneUnit,
    private readonly context: DecisionContext,
    private readonly isOwnName: SubjectNamer['isOwnName'],
  ) {}

  /** Null, with nothing changed, where the question has to be asked in full. */
  check(subject: string): Promise<Decision> | null {
    const known = this.oneUnit.take(subject, this.admission) || this.takeFirst(subject)
    if (known === false) return null
    if (known !== true) return this.denied(subject, known)
    const { remaining, resetAfterUs, nowUs } = this.admission
    return promiseOf(
      new Decision(subject, this.policy, this.context, remaining, 0, toMs(resetAfterUs), nowUs),
    )
  }

  private takeFirst(subject: string): boolean {
    const { oneUnit } = this
    if (oneUnit.takeFirst === undefined || !this.isOwnName(subject)) return false
    return oneUnit.takeFirst(subject, this.admission)
  }

  private denied(subject: string, denial: Denial): Promise<Decision> {
    return denial.toldBy === this ? (denial.told as Promise<Decision>) : this.tell(subject, denial)
  }

  private tell(subject: string, denial: Denial): Promise<Decision> {
    const { remaining, retryAfterUs, resetAfterUs } = denial.answer
    const [retryAfterMs, resetAfterMs] = [toWaitMs(retryAfterUs), toMs(resetAfterUs)]
    const { policy, context } = this
    const atUs = denial.answer.nowUs ?? context.clock.nowUs()
    const decision = promiseOf(
      new Decision(subject, policy, context, remaining, retryAfterMs, resetAfterMs, atUs),
    )
    denial.told = decision
    denial.toldBy = this
    return decision
  }
}

/**
 * A promise looks for a `then` on whatever it is given, a tenth of a decision. The compiler leaves that out for an object
 * whose shape it knows, and it does once a property has been read.
 */
function promiseOf(decision: Decision): Promise<Decision> {
  void decision.allowed
  return Promise.resolve(decision)
}
