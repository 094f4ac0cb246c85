import type { Limit } from '../algorithms/algorithm.js'
import type { Decision, Reason } from '../decision/decision.js'
import type { Recorder } from '../observe/statistics/recorder.js'
import type { Tally } from '../observe/statistics/tally.js'
import type { HeaderStyle } from '../policy/config.js'
import type { RefundRule } from '../policy/refund-rule.js'
import type { Statuses } from '../policy/statuses.js'
import type { MeterConfig } from '../policy/token-meters.js'
import type { Wait } from '../policy/wait.js'
import type { Clock } from '../time/clock.js'
import type { DecisionSource, FailureMode } from './check.js'
import type { PendingCheck } from './pending-check.js'

let made = 0

/** A limit and the name its state is kept under: `<policy>.<limit id>`. Made once and shared, so that it can be compared. */
export class NamedLimit {
  /** Tells it apart from all others. */
  readonly number: number
  /** Whether a request is one unit whatever it costs. */
  readonly countsRequests: boolean

  constructor(
    readonly name: string,
    readonly limit: Limit,
  ) {
    this.number = made++
    this.countsRequests = countsRequests(limit)
  }

  unitsOf(cost: number): number {
    return this.countsRequests ? 1 : cost
  }
}

/** Whether a limit counts requests, whatever they cost. */
export function countsRequests({ counts, algorithm }: Limit): boolean {
  return counts === 'requests' || algorithm.renew !== undefined
}

/** What a decision says beside its numbers. */
export interface PlanLabels {
  /** The policy that is charged; the name of the binding limit takes precedence. */
  readonly policy: string
  readonly tier: string | null
  /** The rule of the policy file that applied; null if none was asked. */
  readonly rule: string | null
  /** Why no limit binds; null if one does. `banned`: an operator lets nothing pass. */
  readonly bypass: Extract<Reason, 'disabled' | 'paused' | 'skipped' | 'shadow' | 'banned'> | null
  /** How the policy file wants the quota to be advertised. */
  readonly headers: HeaderStyle | null
  /** The responses that give back the charge; null if none does. */
  readonly refundIf: RefundRule | null
  /** The responses that forget what the caller has used; null if none does. */
  readonly resetIf: readonly Statuses[] | null
  /** The tokens of a model that a request reserves besides, or has reserved. */
  readonly tokens: readonly MeterConfig[]
  /** How long a request may wait for room; null if not at all. */
  readonly wait: Wait | null
}

export const NO_LABELS: PlanLabels = {
  policy: '',
  tier: null,
  rule: null,
  bypass: null,
  headers: null,
  refundIf: null,
  resetIf: null,
  tokens: [],
  wait: null,
}

/** What all checks of a limiter share. */
export interface CheckContext {
  readonly clock: Clock
  /** Where decisions come from, unless something else decides. */
  readonly source: DecisionSource
  /** Where decisions are counted; null if they are not. */
  readonly recorder: Recorder | null
  /** Whether every decision is counted, or there is an `onEvent`. */
  readonly isListening: boolean
  /** Called for such decisions, and for those with shadow limits, before the caller gets them; not for a peek. */
  onDecided(check: PendingCheck): void
  /** Holds the permits that a decision took. */
  hold(check: PendingCheck, decision: Decision): void
  /** Called for every decision of limits that stand beside a ban. */
  mayStrike(check: PendingCheck): void
}

/** For questions of the library itself. */
export const NOBODY_LISTENS: CheckContext = {
  clock: { nowUs: () => 0, unixMs: () => 0 },
  source: 'none',
  recorder: null,
  isListening: false,
  onDecided() {},
  hold() {},
  mayStrike() {},
}

const CALLER: readonly number[] = []

/**
 * What is asked, without who asks: compiled once for a policy, a tier or a rule, and shared by all its requests. Two
 * checks of one plan ask the same question, so comparing plans is comparing questions.
 *
 *   limits   [ a, b │ c, d │ e ]     the alternatives one behind the other, then the shadow limits
 *   ends     [ 2, 4 ]                where each alternative ends; the shadow limits follow the last
 *   targets  [ 0, 1 │ 0, 1 │ 0 ]     who pays: 0 is the caller, n is `more.others[n - 1]`; empty if it is always the caller
 */
export class Plan {
  /** One limit of the caller, and nothing else. */
  readonly isSingle: boolean
  readonly shadowFrom: number
  readonly hasPermits: boolean
  /** Whether denials may lead to a ban. */
  readonly hasBan: boolean
  /** Whether nothing limits the request, so that no store is asked. */
  readonly asksNothing: boolean
  /** Whether its decisions have effects beside the answer: they are counted or listened to, hold permits, or may be strikes. */
  readonly isObserved: boolean
  /** What a rule of this plan is counted under, once it has been looked up. */
  tally: Tally | null = null

  constructor(
    readonly context: CheckContext,
    readonly labels: PlanLabels,
    readonly limits: readonly NamedLimit[],
    readonly ends: readonly number[] = [limits.length],
    readonly targets: readonly number[] = CALLER,
    readonly onStoreFailure: FailureMode | null = null,
    /** Whether this process decides and the store's decision is only compared with it. */
    readonly isCompared: boolean = false,
  ) {
    this.shadowFrom = ends.at(-1) ?? 0
    this.isSingle = limits.length === 1 && ends.length === 1 && ends[0] === 1 && targets.length === 0
    this.hasPermits = limits.some(({ limit }) => limit.algorithm.renew !== undefined)
    this.hasBan = limits.some(({ limit }) => limit.algorithm.strikes !== undefined)
    this.isObserved = context.isListening || this.hasPermits || this.hasBan || this.shadowFrom < limits.length
    this.asksNothing =
      this.shadowFrom === limits.length && ends.some((end, index) => end === (ends[index - 1] ?? 0))
  }

  /** Whether every limit of some alternative is only watched, so that no failure may deny the request. */
  get bindsNobody(): boolean {
    return this.ends.some((end, index) => end === this.start(index))
  }

  get hasShadow(): boolean {
    return this.shadowFrom < this.limits.length
  }

  /** Where an alternative begins. */
  start(alternative: number): number {
    return alternative === 0 ? 0 : (this.ends[alternative - 1] as number)
  }

  /** The same plan with other limits, as for the share of one process. */
  map(change: (limit: NamedLimit) => NamedLimit): Plan {
    const { context, labels, limits, ends, targets, onStoreFailure, isCompared } = this
    return new Plan(context, labels, limits.map(change), ends, targets, onStoreFailure, isCompared)
  }
}
