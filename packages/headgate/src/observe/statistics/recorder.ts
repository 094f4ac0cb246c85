/**
 * Counts decisions where they are made. A decision in the process takes some hundred nanoseconds, so nothing is made for
 * one that passes: it is a few additions, and only one in 64 of those the process decides alone is timed. That one stands
 * for 64.
 */

import type { Decision } from '../../decision/decision.js'
import type { Answer, Question } from '../../engine/question.js'
import type { DecidedPolicy, Policy } from '../../policy/policies.js'
import type { Source } from '../../store/store.js'
import type { Clock } from '../../time/clock.js'
import { Arrivals } from './arrivals.js'
import { StoreRecorder } from './store-counts.js'
import { Tallies, type Tally } from './tally.js'
import { Violations } from './violations.js'

/** One in so many of the decisions that need no store elsewhere is timed. */
const TIMED = 64
/** Allowed with this part of the limit left, or less, is near the limit. */
const NEAR = 10

/**
 * Units left as last seen, of limits for everything and of narrower ones; NaN where there was none. In a typed array,
 * since a field that may be null takes an object for every fraction it is given.
 */
type LastRemaining = Float64Array
export const GLOBAL = 0
export const ROUTE = 1

/** A decision that was waited for, or could have been. */
export interface CountedAsk {
  readonly question: Question
  readonly policy: Policy | DecidedPolicy
  /** The value that `begin` returned. */
  readonly beganUs: number
  /** The value that `labels` returned. */
  readonly labels: ExemplarLabels | null
}

export interface CountedAnswer {
  readonly answer: Answer
  readonly decision: Decision
  /** Reading of the clock when it was there. */
  readonly atUs: number
  /** Whether it was known in the process, without waiting. */
  readonly isImmediate: boolean
}

export interface RecorderOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly exemplar: (() => ExemplarLabels | null) | null
  /** Whether arrivals are sampled. */
  readonly sampleArrivals: boolean
}

/** Labels that lead from a measurement to its trace, such as `{ trace_id }`. */
export type ExemplarLabels = Readonly<Record<string, string>>

interface Timed {
  readonly us: number
  /** For how many decisions it stands. */
  readonly weight: number
  readonly labels: ExemplarLabels | null
}

/** A decision that took so long, and what leads to its trace. */
export interface Exemplar {
  readonly source: Source
  readonly labels: ExemplarLabels
  readonly seconds: number
  readonly atMs: number
}

export class Recorder {
  readonly tallies = new Tallies()
  readonly violations: Violations
  /** Null where they are not sampled. */
  readonly arrivals: Arrivals | null
  readonly store: StoreRecorder
  readonly remaining: LastRemaining = new Float64Array(2).fill(Number.NaN)
  /** Requests that limits in shadow would have denied. */
  shadowDenied = 0
  /** By bucket of the latencies: the last decision there that a trace is known of. */
  readonly exemplars: (Exemplar | undefined)[] = []
  private untilTimed = 1

  constructor(private readonly options: RecorderOptions) {
    const unixMs = (): number => options.clock.unixMs()
    this.violations = new Violations(unixMs, options.random)
    this.store = new StoreRecorder(unixMs)
    this.arrivals = options.sampleArrivals ? new Arrivals() : null
  }

  nowUs(): number {
    return this.options.clock.nowUs()
  }

  /** A reading of the clock, or 0 for a decision that is not timed. */
  begin(isRemote: boolean): number {
    if (!isRemote && --this.untilTimed > 0) return 0
    this.untilTimed = TIMED
    return this.options.clock.nowUs()
  }

  /** Labels that lead to the trace of the request that asks now. */
  labels(): ExemplarLabels | null {
    return this.options.exemplar === null ? null : this.options.exemplar()
  }

  decided(asked: CountedAsk, answered: CountedAnswer, source: Source): void {
    const { policy, question, beganUs, labels } = asked
    const { answer, decision, atUs, isImmediate } = answered
    const rule = 'rule' in policy ? policy.rule : null
    const tally = this.tallies.find(policy.name, policy.tier, rule, source)
    if (beganUs > 0)
      this.timed(tally, { us: atUs - beganUs, weight: source === 'memory' ? TIMED : 1, labels })
    if (answer.charged < 0) {
      tally.denied++
      if (isImmediate && source === 'redis') this.store.denyCache++
      const [first] = question.alternatives[0] ?? []
      if (first !== undefined && --this.violations.untilNext <= 0)
        this.violations.look(first.subject, decision)
    } else {
      tally.allowed++
      if (isNearLimit(question, answer)) tally.nearLimit++
      if (answer.leased === true) this.store.leased++
      this.saw(question, decision)
    }
    if (this.arrivals !== null) this.arrived(question, policy, decision)
    if (answer.shadow.some(({ allowed }) => !allowed)) this.shadowDenied++
  }

  private arrived(question: Question, { name, tier }: Policy | DecidedPolicy, decision: Decision): void {
    const [first] = question.alternatives[0] ?? []
    if (first === undefined) return
    const { cost, allowed } = decision
    const atMs = this.options.clock.unixMs()
    this.arrivals?.add({ subject: first.subject, policy: name, tier, atMs, cost, denied: !allowed })
  }

  private timed(tally: Tally, { us, weight, labels }: Timed): void {
    const bucket = tally.latency.add(us, weight)
    if (labels === null) return
    this.exemplars[bucket] = {
      source: tally.labels.source,
      labels,
      seconds: us / 1_000_000,
      atMs: this.options.clock.unixMs(),
    }
  }

  private saw(question: Question, { remaining }: Decision): void {
    const scope = question.alternatives[0]?.[0]?.scope
    if (scope === undefined || remaining === Number.POSITIVE_INFINITY) return
    this.remaining[scope === 'global' ? GLOBAL : ROUTE] = remaining
  }

  /** For a policy of one limit, asked for one unit at a time. */
  plain(policy: Policy | DecidedPolicy, source: Source): PlainRecorder {
    const rule = 'rule' in policy ? policy.rule : null
    const tally = this.tallies.find(policy.name, policy.tier, rule, source)
    return new PlainRecorder(this, tally, policy.limits[0]?.limit.limit ?? 0)
  }

  /** One unit of a policy's only limit. */
  plainArrived(tally: Tally, subject: string, denied: boolean): void {
    const { policy, tier } = tally.labels
    this.arrivals?.add({ subject, policy, tier, atMs: this.options.clock.unixMs(), cost: 1, denied })
  }

  /** One of the plain decisions, which stands for all that were not timed. */
  plainTimed(tally: Tally, us: number): void {
    this.timed(tally, { us, weight: TIMED, labels: this.labels() })
  }
}

/**
 * Counts the plainest decisions. Everything it adds to is found when the policy is compiled: a walk from object to object
 * would take longer than the additions. The seldom parts have functions of their own: the compiler inlines only so much
 * into a decision.
 */
export class PlainRecorder {
  private untilTimed = 1
  private readonly remaining: LastRemaining
  private readonly violations: Violations
  private readonly arrivals: Arrivals | null
  private readonly nearBelow: number
  private readonly isRemembered: boolean

  constructor(
    private readonly recorder: Recorder,
    private readonly tally: Tally,
    limit: number,
  ) {
    this.remaining = recorder.remaining
    this.violations = recorder.violations
    this.arrivals = recorder.arrivals
    this.nearBelow = Math.floor(limit / NEAR)
    this.isRemembered = tally.labels.source === 'redis'
  }

  /** A reading of the clock, or 0 for a decision that is not timed. */
  begin(): number {
    return --this.untilTimed > 0 ? 0 : this.beginTimed()
  }

  private beginTimed(): number {
    this.untilTimed = TIMED
    return this.recorder.nowUs()
  }

  /** It began then and is there now. */
  timed(beganUs: number): void {
    this.recorder.plainTimed(this.tally, this.recorder.nowUs() - beganUs)
  }

  allowed(subject: string, remaining: number): void {
    this.tally.allowed++
    this.remaining[GLOBAL] = remaining
    if (remaining <= this.nearBelow || this.arrivals !== null) this.allowedWithMore(subject, remaining)
  }

  private allowedWithMore(subject: string, remaining: number): void {
    if (remaining <= this.nearBelow) this.tally.nearLimit++
    if (this.arrivals !== null) this.recorder.plainArrived(this.tally, subject, false)
  }

  denied(subject: string, decision: Decision): void {
    this.tally.denied++
    if (this.isRemembered) this.recorder.store.denyCache++
    if (--this.violations.untilNext <= 0) this.violations.look(subject, decision)
    if (this.arrivals !== null) this.recorder.plainArrived(this.tally, subject, true)
  }
}

function isNearLimit({ alternatives }: Question, { charged, verdicts }: Answer): boolean {
  const checks = alternatives[charged]
  const told = verdicts[charged]
  if (checks === undefined || told === undefined) return false
  for (let index = 0; index < told.length; index++) {
    const remaining = told[index]?.remaining ?? Number.POSITIVE_INFINITY
    if (remaining * NEAR <= (checks[index]?.limit.limit ?? 0)) return true
  }
  return false
}
