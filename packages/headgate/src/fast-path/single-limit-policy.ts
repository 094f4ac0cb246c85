/** One unit of one limit, the commonest question, without a question made for it. */

import { Decision, type DecisionContext } from '../decision/decision.js'
import { toMs, toWaitMs } from '../decision/verdicts.js'
import { Admission } from '../engine/algorithm.js'
import type { PlainRecorder } from '../observe/statistics/recorder.js'
import type { Policy } from '../policy/policies.js'
import type { KeptDenial } from './kept-denial.js'
import { AskedUnit, type UnitLane, type UnitPolicy } from './unit-lane.js'

/** One unit of a limit, asked by the text of a subject. */
export interface OneUnit {
  /**
   * Returns true with `admission` filled in, or the denial. Returns false, with nothing charged, when the stage cannot
   * tell from the text alone: then the question has to be asked in full.
   */
  take(subject: string, admission: Admission): KeptDenial | boolean
  /** The way to ask for what `take` cannot tell, where it is shorter than asking in full. */
  readonly lane?: UnitLane | undefined
}

/** Whether a text names its subject as it stands: nothing in it has to be hashed or spelled differently. */
export type IsOwnName = (text: string) => boolean

/**
 * A policy of one limit, asked for one unit: by far the commonest question. Nothing is made for it but the decision,
 * and in a flood not even that.
 */
export class SingleLimitPolicy {
  private readonly admission = new Admission()
  /** Null where a unit has to be asked for in full. */
  private readonly asked: UnitPolicy | null

  constructor(
    private readonly policy: Policy,
    private readonly oneUnit: OneUnit,
    private readonly context: DecisionContext,
    /** Where its decisions are counted; null where they are not. */
    private readonly recorder: PlainRecorder | null = null,
  ) {
    const [only] = policy.limits
    const { lane } = oneUnit
    const shared = { policy, context, recorder: recorder?.recorder ?? null }
    this.asked = lane === undefined || only === undefined ? null : { ...only, ...shared, lane }
  }

  /** Null, with nothing changed, where the question has to be asked in full. */
  check(subject: string): Promise<Decision> | null {
    const known = this.take(subject)
    if (known === false) return promised(this.ask(subject))
    return known === true ? promiseOf(this.admitted(subject)) : this.denied(subject, known).promise
  }

  /** The same without a promise, where there is nothing to wait for. */
  checkNow(subject: string): Decision | Promise<Decision> | null {
    const known = this.take(subject)
    if (known === false) return this.ask(subject)
    return known === true ? this.admitted(subject) : this.denied(subject, known).decision
  }

  private ask(subject: string): Decision | Promise<Decision> | null {
    const { asked } = this
    return asked?.lane.isFor(subject) ? new AskedUnit(subject, asked).ask() : null
  }

  private take(subject: string): KeptDenial | boolean {
    const { recorder } = this
    const beganUs = recorder === null ? 0 : recorder.begin()
    // Called in one place only: in two, the compiler would leave it a call.
    const known = this.oneUnit.take(subject, this.admission)
    // Questions that have to be asked in full are timed there.
    if (beganUs > 0 && known !== false) recorder?.timed(beganUs)
    return known
  }

  private admitted(subject: string): Decision {
    const { remaining, resetAfterUs, nowUs } = this.admission
    this.recorder?.allowed(subject, remaining)
    return new Decision(subject, this.policy, this.context, remaining, 0, toMs(resetAfterUs), nowUs)
  }

  private denied(subject: string, denial: KeptDenial): DeniedDecision {
    const told = denial.toldBy === this ? (denial.told as DeniedDecision) : this.decisionOn(subject, denial)
    this.recorder?.denied(subject, told.decision)
    return told
  }

  private decisionOn(subject: string, denial: KeptDenial): DeniedDecision {
    const { remaining, retryAfterUs, resetAfterUs } = denial.answer
    const [retryAfterMs, resetAfterMs] = [toWaitMs(retryAfterUs), toMs(resetAfterUs)]
    const { policy, context } = this
    const atUs = denial.answer.nowUs ?? context.clock.nowUs()
    const decision = new Decision(subject, policy, context, remaining, retryAfterMs, resetAfterMs, atUs)
    const told = { decision, promise: promiseOf(decision) }
    denial.told = told
    denial.toldBy = this
    return told
  }
}

function promised(decision: Decision | Promise<Decision> | null): Promise<Decision> | null {
  return decision === null || decision instanceof Promise ? decision : promiseOf(decision)
}

/** A denial as callers get it: the same for all that it is true for. */
interface DeniedDecision {
  readonly decision: Decision
  readonly promise: Promise<Decision>
}

/**
 * A promise looks for a `then` on whatever it is given, a tenth of a decision. The compiler leaves that out for an
 * object whose shape it knows, and it does once a property has been read.
 */
function promiseOf(decision: Decision): Promise<Decision> {
  void decision.allowed
  return Promise.resolve(decision)
}
