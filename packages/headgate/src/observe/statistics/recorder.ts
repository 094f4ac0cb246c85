/**
 * Counts decisions where they are made. A decision in the process takes a few hundred nanoseconds, so an allowed
 * one costs only a few additions and no allocation, and only one in 64 of those decided locally is timed. That one
 * stands for 64.
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

/** One in this many of the local decisions is timed. */
const TIMED = 64
/** An allowed request is near the limit if at most a tenth of the limit is left. */
const NEAR = 10

/**
 * Units left as last seen, of global limits and of narrower ones; NaN if none was seen. A typed array, because a
 * nullable field would allocate an object for every fraction.
 */
type LastRemaining = Float64Array
export const GLOBAL = 0
export const ROUTE = 1

/** A decision that was, or could have been, asynchronous. */
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
  /** The clock reading at the time of the answer. */
  readonly atUs: number
  /** Whether the process knew it without waiting. */
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
  /** The number of decisions it stands for. */
  readonly weight: number
  readonly labels: ExemplarLabels | null
}

/** The latency of a decision whose trace is known. */
export interface Exemplar {
  readonly source: Source
  readonly labels: ExemplarLabels
  readonly seconds: number
  readonly atMs: number
}

export class Recorder {
  readonly tallies = new Tallies()
  readonly violations: Violations
  /** Null if they are not sampled. */
  readonly arrivals: Arrivals | null
  readonly store: StoreRecorder
  readonly remaining: LastRemaining = new Float64Array(2).fill(Number.NaN)
  /** Requests that shadow limits would have denied. */
  shadowDenied = 0
  /** Per latency bucket: the latest decision whose trace is known. */
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

  /** Returns a clock reading, or 0 for a decision that is not timed. */
  begin(isRemote: boolean): number {
    if (!isRemote && --this.untilTimed > 0) return 0
    this.untilTimed = TIMED
    return this.options.clock.nowUs()
  }

  /** Returns labels that lead to the trace of the current request. */
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

  /** Returns the recorder for single units of a single-limit policy. */
  plain(policy: Policy | DecidedPolicy, source: Source): PlainRecorder {
    const rule = 'rule' in policy ? policy.rule : null
    const tally = this.tallies.find(policy.name, policy.tier, rule, source)
    return new PlainRecorder(this, tally, policy.limits[0]?.limit.limit ?? 0)
  }

  /** Records the arrival of one unit of a policy's only limit. */
  plainArrived(tally: Tally, subject: string, denied: boolean): void {
    const { policy, tier } = tally.labels
    this.arrivals?.add({ subject, policy, tier, atMs: this.options.clock.unixMs(), cost: 1, denied })
  }

  /** Records a timed decision, which stands for all that were not timed. */
  plainTimed(tally: Tally, us: number): void {
    this.timed(tally, { us, weight: TIMED, labels: this.labels() })
  }
}

/**
 * Counts the simplest decisions. Everything it adds to is looked up when the policy is compiled, because walking
 * from object to object would take longer than the additions. Rare cases have functions of their own, because the
 * compiler inlines only so much into a decision.
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

  /** Returns a clock reading, or 0 for a decision that is not timed. */
  begin(): number {
    return --this.untilTimed > 0 ? 0 : this.beginTimed()
  }

  private beginTimed(): number {
    this.untilTimed = TIMED
    return this.recorder.nowUs()
  }

  /** Records the time since `beganUs`. */
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
