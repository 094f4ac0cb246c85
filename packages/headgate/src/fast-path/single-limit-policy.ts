/** Decides one unit of one limit, the commonest request, without resolving it, and without a question where the stage can tell. */

import { Decision, type DecisionContext } from '../decision/decision.js'
import { toMs, toWaitMs } from '../decision/verdicts.js'
import { Admission } from '../engine/legacy-algorithm.js'
import type { Question } from '../engine/question.js'
import { SingleQuestion } from '../engine/single-question.js'
import type { PlainRecorder, Recorder } from '../observe/statistics/recorder.js'
import type { DecidedPolicy, NamedLimit, Policy } from '../policy/policies.js'
import type { Action, Stage } from '../store/stage.js'
import type { KeptDenial } from './kept-denials.js'

/** One unit of a limit, asked by the text of a subject. */
export interface OneUnit {
  /**
   * Returns true with `admission` filled in, or the denial. Returns false, with nothing charged, if the stage
   * cannot tell from the text alone: then the question has to be asked in full.
   */
  take(subject: string, admission: Admission): KeptDenial | boolean
}

/** For stages that know nothing of a unit before it is asked for. */
const UNKNOWN: OneUnit = { take: () => false }

/** Whether a text is already the name of its subject: nothing in it has to be hashed or respelt. */
export type IsOwnName = (text: string) => boolean

/** The part of the front door that a single-limit policy needs. */
export interface UnitDoor {
  readonly stage: Stage
  readonly context: DecisionContext
  /** Where decisions are counted; null if they are not. */
  readonly recorder: Recorder | null
  ask(
    action: Action,
    asked: {
      readonly question: Question
      readonly policy: Policy | DecidedPolicy
      readonly cost: number
    },
  ): Decision | Promise<Decision>
}

/**
 * A policy of one limit, asked for one unit: by far the commonest request. If the stage can tell, nothing is
 * allocated but the decision, and in a flood not even that. If it cannot, the question is asked without being
 * resolved again.
 */
export class SingleLimitPolicy {
  private readonly admission = new Admission()
  private readonly only: NamedLimit
  private readonly oneUnit: OneUnit
  private readonly context: DecisionContext
  private readonly recorder: PlainRecorder | null

  constructor(
    private readonly policy: Policy | DecidedPolicy,
    private readonly door: UnitDoor,
    private readonly isOwnName: IsOwnName,
  ) {
    const { stage, context, recorder } = door
    this.only = policy.limits[0] as NamedLimit
    this.oneUnit = stage.oneUnit?.(this.only.name, this.only.limit, isOwnName) ?? UNKNOWN
    this.context = context
    this.recorder = recorder?.plain(policy, context.source) ?? null
  }

  /** Returns null, with nothing changed, if the request has to be resolved. */
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
    if (!this.isOwnName(subject)) return null
    const { policy, only } = this
    const question = new SingleQuestion(subject, 'global', only.name, only.limit, 1)
    return this.door.ask('decide', { question, policy, cost: 1 })
  }

  private take(subject: string): KeptDenial | boolean {
    const { recorder } = this
    const beganUs = recorder === null ? 0 : recorder.begin()
    // Called in one place only: with two, the compiler would not inline it.
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

/** A denial as callers get it: the same one for everybody it applies to. */
interface DeniedDecision {
  readonly decision: Decision
  readonly promise: Promise<Decision>
}

/**
 * A promise looks for a `then` on its value, a tenth of a decision. The compiler omits that for an object whose
 * shape it knows, which it does once a property has been read.
 */
function promiseOf(decision: Decision): Promise<Decision> {
  void decision.allowed
  return Promise.resolve(decision)
}
