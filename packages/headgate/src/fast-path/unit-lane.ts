/**
 * The way of one unit of one limit through the stages before a remote store. On the ordinary way each of them makes an
 * object that waits for the answer. Here the request itself is the only one: it is its own question, it waits, and the
 * stages are found once, when the policy is compiled.
 */
import { decideOn } from '../decision/decide-on.js'
import { Decision, type DecisionContext } from '../decision/decision.js'
import type { Limit } from '../engine/limit.js'
import type { Answer } from '../engine/question.js'
import type { Recorder } from '../observe/statistics/recorder.js'
import type { Policy } from '../policy/policies.js'
import type { Waiter } from '../store/waiter.js'
import { keepV8Shape } from './keep-v8-shape.js'
import { NO_LIMIT, SingleQuestion } from './single-question.js'

/** The stages that a unit passes, as one. Whatever a stage does for a question it does for a unit too. */
export interface UnitLane {
  /** Whether a text can be asked for as it stands. */
  isFor(subject: string): boolean
  /** Passes a unit on towards the store; it hears the answer, now or later. */
  ask(unit: AskedUnit): void
  /** Notes what the store answered, before the caller hears it. */
  answered(unit: AskedUnit, answer: Answer): void
  /** Answers in place of a store that failed, or throws what it failed with. */
  failed(unit: AskedUnit, error: unknown): Answer
}

/** The facts that all units of a policy share. */
export interface UnitPolicy {
  readonly policy: Policy
  readonly name: string
  readonly limit: Limit
  readonly context: DecisionContext
  readonly lane: UnitLane
  readonly recorder: Recorder | null
}

/** Stands where nothing was thrown: anything can be. */
const NONE = Symbol('nothing')

/** One unit that is asked for, and whoever waits for it. */
export class AskedUnit extends SingleQuestion implements Waiter<Answer> {
  // Declared only: an initialiser would write every field twice.
  declare readonly of: UnitPolicy
  declare readonly beganUs: number
  declare readonly labels: Readonly<Record<string, string>> | null
  /** The time it was asked at, and the epoch of the deny cache then. */
  declare askedAtUs: number
  declare epoch: number
  declare private decided: Decision | null
  declare private fault: unknown
  declare private resolve: ((decision: Decision) => void) | null
  declare private reject: ((error: unknown) => void) | null

  constructor(subject: string, of: UnitPolicy) {
    super(subject, 'global', of.name, of.limit, 1)
    const { recorder } = of
    this.of = of
    this.beganUs = recorder === null ? 0 : recorder.begin(true)
    this.labels = recorder === null ? null : recorder.labels()
    this.askedAtUs = 0.5
    this.epoch = 0
    this.decided = null
    this.fault = NONE
    this.resolve = null
    this.reject = null
  }

  /** Asks, and returns the decision where there is nothing to wait for. Throws what nobody decides on. */
  ask(): Decision | Promise<Decision> {
    this.of.lane.ask(this)
    if (this.decided !== null) return this.decided
    if (this.fault !== NONE) throw this.fault
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  answered(answer: Answer): void {
    try {
      this.of.lane.answered(this, answer)
      this.decide(answer)
    } catch (error) {
      this.refuse(error)
    }
  }

  failed(error: unknown): void {
    try {
      this.decide(this.of.lane.failed(this, error))
    } catch (fault) {
      this.refuse(fault)
    }
  }

  private refuse(fault: unknown): void {
    if (this.reject === null) this.fault = fault
    else this.reject(fault)
  }

  private decide(answer: Answer): void {
    const { policy, context, recorder } = this.of
    const decision = decideOn(this, answer, policy, 1, context)
    if (recorder !== null) this.count(recorder, answer, decision)
    this.decided = decision
    this.resolve?.(decision)
    // The decision keeps its question; nobody has to be told again.
    this.resolve = null
    this.reject = null
  }

  private count(recorder: Recorder, answer: Answer, decision: Decision): void {
    const { policy, context } = this.of
    const asked = { question: this, policy, beganUs: this.beganUs, labels: this.labels }
    const answered = { answer, decision, atUs: Decision.atUsOf(decision), isImmediate: false }
    recorder.decided(asked, answered, answer.source ?? context.source)
  }
}

const nowhere: UnitPolicy = {
  policy: { name: '', tier: null, limits: [] },
  name: '',
  limit: NO_LIMIT,
  context: { clock: { nowUs: () => 0, unixMs: () => 0 }, source: 'memory' },
  lane: {
    isFor: () => false,
    ask() {},
    answered() {},
    failed(_, error) {
      throw error
    },
  },
  recorder: null,
}
keepV8Shape(new AskedUnit('', nowhere))
