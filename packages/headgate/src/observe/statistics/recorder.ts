/**
 * Counts decisions where they are made. A decision in the process takes a few hundred nanoseconds, so an allowed
 * one costs only a few additions and no allocation, and only one in 64 of those decided locally is timed. That one
 * stands for 64.
 */

import type { DecisionSource } from '../../check/check.js'
import type { Attempt, PendingCheck } from '../../check/pending-check.js'
import type { NamedLimit, Plan } from '../../check/plan.js'
import type { Clock } from '../../time/clock.js'
import { type Arrival, Arrivals } from './arrivals.js'
import { askedRequest } from './asked-request.js'
import { Denials, MostDenied } from './denials.js'
import { Latencies } from './latencies.js'
import { StoreRecorder } from './store-counts.js'
import { Tallies, type Tally } from './tally.js'

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

export interface RecorderOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly exemplar: (() => ExemplarLabels | null) | null
  /** Whether arrivals are sampled. */
  readonly sampleArrivals: boolean
}

/** Labels that lead from a measurement to its trace, such as `{ trace_id }`. */
export type ExemplarLabels = Readonly<Record<string, string>>

/** The latency of a decision whose trace is known. */
export interface Exemplar {
  readonly source: DecisionSource
  readonly labels: ExemplarLabels
  readonly seconds: number
  readonly atMs: number
}

export class Recorder {
  readonly tallies = new Tallies()
  readonly denials: Denials
  readonly mostDenied: MostDenied
  /** Whom limits in shadow would have denied most. */
  readonly mostShadowDenied: MostDenied
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
    this.denials = new Denials(unixMs)
    this.mostDenied = new MostDenied(options.random)
    this.mostShadowDenied = new MostDenied(options.random)
    this.store = new StoreRecorder(unixMs)
    this.arrivals = options.sampleArrivals ? new Arrivals() : null
  }

  /** Returns labels that lead to the trace of the current request. */
  labels(): ExemplarLabels | null {
    return this.options.exemplar === null ? null : this.options.exemplar()
  }

  decided(check: PendingCheck): void {
    const { plan, atUs } = check
    const source = check.source as DecisionSource
    const tally = source === plan.context.source ? this.tallyOf(plan) : this.find(plan, source)
    const isRemote = plan.context.source !== 'memory'
    if (check.attempt?.hasWaited) this.waited(check.attempt, plan, tally)
    else if (atUs > 0 && (isRemote || --this.untilTimed <= 0)) this.timed(check, tally)
    if (check.charged < 0) this.denied(check, tally)
    else this.allowed(check, tally)
    if (this.arrivals !== null) this.arrived(check)
    if (plan.hasShadow && !check.isUnlooked) this.watchShadow(check)
  }

  /** The tally of a plan, looked up once. */
  private tallyOf(plan: Plan): Tally {
    plan.tally ??= this.find(plan, plan.context.source)
    return plan.tally
  }

  private find({ labels }: Plan, source: DecisionSource): Tally {
    return this.tallies.find(labels.policy, labels.tier, labels.rule, source)
  }

  private denied(check: PendingCheck, tally: Tally): void {
    tally.denied++
    if (check.isCached) this.store.denyCache++
    if (check.plan.limits.length === 0 || --this.mostDenied.untilNext > 0) return
    const subject = check.subjectOf(0)
    this.denials.look(subject, check.decision, check.request, this.mostDenied.gap)
    this.mostDenied.look(subject, check.decision)
  }

  private allowed(check: PendingCheck, tally: Tally): void {
    tally.allowed++
    if (check.isLeased) this.store.leased++
    if (check.isUnlooked || check.plan.shadowFrom === 0) return
    if (isNearLimit(check)) tally.nearLimit++
    this.remaining[check.scopeOf(0) === 'global' ? GLOBAL : ROUTE] = check.remaining
  }

  private watchShadow(check: PendingCheck): void {
    for (let index = check.plan.shadowFrom; index < check.plan.limits.length; index++) {
      if (check.wait(index) === 0) continue
      this.shadowDenied++
      if (--this.mostShadowDenied.untilNext > 0) return
      const { name: policy } = check.plan.limits[index] as NamedLimit
      this.mostShadowDenied.look(check.subjectOf(index), { policy, tier: check.plan.labels.tier })
      return
    }
  }

  private arrived(check: PendingCheck): void {
    const { cost, allowed, plan } = check
    const subject = check.subjectOf(0)
    if (plan.limits.length === 0 || this.arrivals?.isSampled(subject) !== true) return
    const { policy, tier } = plan.labels
    const atMs = this.options.clock.unixMs()
    this.arrivals.add({ subject, policy, tier, atMs, cost, denied: !allowed, request: requestOf(check) })
  }

  private waited({ sinceUs }: Attempt, { context }: Plan, tally: Tally): void {
    tally.waited ??= new Latencies()
    tally.waited.add(context.clock.nowUs() - sinceUs, 1)
  }

  private timed(check: PendingCheck, tally: Tally): void {
    this.untilTimed = TIMED
    const us = check.plan.context.clock.nowUs() - check.atUs
    const bucket = tally.latency.add(us, check.source === 'memory' ? TIMED : 1)
    if (check.exemplar === null) return
    this.exemplars[bucket] = {
      source: tally.labels.source,
      labels: check.exemplar,
      seconds: us / 1_000_000,
      atMs: this.options.clock.unixMs(),
    }
  }
}

function requestOf({ request }: PendingCheck): Arrival['request'] {
  if (request === null) return null
  const { method, path } = askedRequest(request)
  return { method, path, tier: request.tier ?? null }
}

/** Whether any limit that was charged has at most a tenth left. */
function isNearLimit(check: PendingCheck): boolean {
  const { plan, charged } = check
  const end = plan.ends[charged] ?? 0
  for (let index = plan.start(charged); index < end; index++) {
    if (check.left(index) * NEAR <= (plan.limits[index] as NamedLimit).limit.limit) return true
  }
  return false
}
