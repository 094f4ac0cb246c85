/**
 * The one object that travels: made by the limiter, looked at by the deny cache, the leases, the breaker and the batch,
 * filled in by a store, then what settles the caller's promise and what the decision reads. With one limit its numbers
 * are fields; those of several are also in a list, and the fields show the limit that binds.
 */
import { type Limit, NEVER, NOT_CHARGED, type Outcome } from '../algorithms/algorithm.js'
import { Decision } from '../decision/decision.js'
import type { ExemplarLabels } from '../observe/statistics/recorder.js'
import type { RequestFacts } from '../policy/request-facts.js'
import { type Check, type DecisionSource, type FailureMode, type Renewal, stateOf } from './check.js'
import type { NamedLimit, Plan } from './plan.js'

/** Another subject that pays, and in which scope. */
export interface Target {
  readonly subject: string
  readonly scope: string
}

/** What few checks have; kept apart, because the size of a check is what it costs the garbage collector. */
export interface RareParts {
  /** The scope of the caller's own limits. */
  readonly scope: string
  /** Whether nothing is charged. */
  readonly isPeek: boolean
  readonly others: readonly Target[]
  /** The units of each limit, if they do not follow from the cost. */
  readonly units: readonly number[] | null
  readonly onStoreFailure: FailureMode | null
}

/** One of the times that a request which may wait for room is asked about: it is one decision all the same. */
export interface Attempt {
  /** When the request came, by the limiter's clock. */
  readonly sinceUs: number
  /** Whether it was held, so that its time is not that of the store. */
  hasWaited: boolean
}

/** Waits for a check to be decided. */
export interface CheckWaiter {
  /** One of the two is called, once. */
  settled(check: PendingCheck): void
  failed(error: unknown): void
}

/** A limit that had room for a request, and when it was charged there; null if there was nothing to charge. */
export interface Admission {
  readonly check: Check
  readonly chargedAtUs: number | null
}

/** Those that bind, and those that are only watched. */
export interface Admissions {
  readonly binding: readonly Admission[]
  readonly shadow: readonly Admission[]
}

const NO_TARGETS: readonly Target[] = []
const PLAIN: RareParts = {
  scope: 'global',
  isPeek: false,
  others: NO_TARGETS,
  units: null,
  onStoreFailure: null,
}
const NO_CROSSINGS: readonly never[] = []
const DENIED = -1
/** Wait, remaining, reset and time charged. */
const PER_LIMIT = 4
const [WAIT, REMAINING, RESET, CHARGED_AT] = [0, 1, 2, 3]

export class PendingCheck implements Outcome {
  waitUs = 0 as number
  remaining = 0 as number
  resetAfterUs = 0 as number
  chargedAtUs: number = NOT_CHARGED
  told: readonly number[] | null = null
  /** The alternative that was charged; −1 while none is, and for a denial. */
  charged: number = DENIED
  /** The limiter's clock when it was asked. */
  atUs = 0 as number
  /** What decided; null until it is decided. */
  source: DecisionSource | null = null
  /** Whether units leased by this process were spent: `remaining` is then what this process knows of. */
  isLeased = false
  /** Whether it is a denial that this process remembered. */
  isCached = false
  /** Whether it is a question of the library itself, which is neither counted nor decided by a failure mode. */
  isInternal = false
  /**
   * Not null for one of several attempts of a request that may wait. A denial is then not final: it is no strike, and
   * neither counted nor told, until `conclude` says that it was the last.
   */
  attempt: Attempt | null = null
  /** The plan that the store is asked: another one for the share of a region. */
  asked: Plan
  /** Lead from its latency to the trace of its request. */
  exemplar: ExemplarLabels | null = null
  /** The request it is about, until it is settled: what is remembered of a denial does not keep it. */
  request: RequestFacts | null = null
  private numbers: number[] | null = null
  /** `told` of each of several limits. */
  private toldOf: Map<number, readonly number[]> | null = null
  private waiter: CheckWaiter | null = null
  private failure: { readonly error: unknown } | null = null
  private made: Decision | null = null

  constructor(
    readonly plan: Plan,
    readonly subject: string,
    readonly cost: number,
    readonly more: RareParts | null = null,
  ) {
    this.asked = plan
  }

  get isPeek(): boolean {
    return this.more?.isPeek === true
  }

  get onStoreFailure(): FailureMode | null {
    return this.more?.onStoreFailure ?? this.plan.onStoreFailure
  }

  get others(): readonly Target[] {
    return this.more === null ? NO_TARGETS : this.more.others
  }

  /** Who pays for a limit of the plan. */
  subjectOf(index: number): string {
    const target = this.plan.targets[index] ?? 0
    return target === 0 ? this.subject : (this.others[target - 1] as Target).subject
  }

  scopeOf(index: number): string {
    if (this.more === null) return 'global'
    const target = this.plan.targets[index] ?? 0
    return target === 0 ? this.more.scope : (this.more.others[target - 1] as Target).scope
  }

  unitsOf(index: number): number {
    const units = this.more === null ? null : this.more.units
    return units === null
      ? (this.plan.limits[index] as NamedLimit).unitsOf(this.cost)
      : (units[index] as number)
  }

  /** One limit of the plan as a check of its own, for refunds and the like. */
  checkOf(index: number): Check {
    const { name, limit } = this.plan.limits[index] as NamedLimit
    return {
      subject: this.subjectOf(index),
      scope: this.scopeOf(index),
      name,
      limit,
      cost: this.unitsOf(index),
    }
  }

  /** The same question, undecided, for the library itself. */
  again(): PendingCheck {
    const again = new PendingCheck(this.plan, this.subject, this.cost, this.more)
    again.atUs = this.atUs
    again.asked = this.asked
    again.isInternal = true
    return again
  }

  /** The same question, as a look that charges nothing. */
  asPeek(): PendingCheck {
    return new PendingCheck(this.plan, this.subject, this.cost, { ...(this.more ?? PLAIN), isPeek: true })
  }

  // The numbers of each limit.

  wait(index: number): number {
    return this.numbers === null ? this.waitUs : (this.numbers[index * PER_LIMIT + WAIT] as number)
  }

  left(index: number): number {
    return this.numbers === null ? this.remaining : (this.numbers[index * PER_LIMIT + REMAINING] as number)
  }

  resetAfter(index: number): number {
    return this.numbers === null ? this.resetAfterUs : (this.numbers[index * PER_LIMIT + RESET] as number)
  }

  chargedAt(index: number): number {
    return this.numbers === null ? this.chargedAtUs : (this.numbers[index * PER_LIMIT + CHARGED_AT] as number)
  }

  /** Writes the numbers of a limit; for stores of your own. */
  set(index: number, waitUs: number, remaining: number, resetAfterUs: number, chargedAtUs: number): void {
    this.waitUs = waitUs
    this.remaining = remaining
    this.resetAfterUs = resetAfterUs
    this.chargedAtUs = chargedAtUs
    this.keep(index)
  }

  /** Keeps the numbers that were just written to the fields as those of one of several limits. */
  keep(index: number): void {
    const { limits } = this.plan
    if (limits.length === 1) return
    if (this.told !== null) {
      this.toldOf ??= new Map()
      this.toldOf.set(index, this.told)
      this.told = null
    }
    this.numbers ??= new Array(limits.length * PER_LIMIT).fill(0)
    const at = index * PER_LIMIT
    this.numbers[at + WAIT] = this.waitUs
    this.numbers[at + REMAINING] = this.remaining
    this.numbers[at + RESET] = this.resetAfterUs
    this.numbers[at + CHARGED_AT] = this.chargedAtUs
  }

  /** What was told of a limit beside its numbers; null if nothing. */
  toldBeside(index: number): readonly number[] | null {
    return this.plan.limits.length === 1 ? this.told : (this.toldOf?.get(index) ?? null)
  }

  /** The quotas of which the charge has reached a part that events tell, in percent. */
  crossings(): readonly { readonly index: number; readonly percent: number }[] {
    if (this.charged < 0 || (this.told === null && this.toldOf === null)) return NO_CROSSINGS
    return this.plan.limits.flatMap(({ limit }, index) =>
      limit.algorithm.account === undefined
        ? []
        : (this.toldBeside(index) ?? []).map(percent => ({ index, percent })),
    )
  }

  /** Takes over the numbers of the same question, as they are `laterUs` after it was asked. */
  copyFrom(other: PendingCheck, laterUs = 0): void {
    this.charged = other.charged
    for (let index = 0; index < this.plan.limits.length; index++) {
      this.waitUs = Math.max(0, other.wait(index) - laterUs)
      this.remaining = other.left(index)
      this.resetAfterUs = Math.max(0, other.resetAfter(index) - laterUs)
      this.chargedAtUs = other.chargedAt(index)
      this.keep(index)
    }
  }

  private show(index: number): void {
    if (index < 0) return
    this.waitUs = this.wait(index)
    this.remaining = this.left(index)
    this.resetAfterUs = this.resetAfter(index)
    this.chargedAtUs = this.chargedAt(index)
  }

  // Settling.

  /** All numbers are written: the decision is made. */
  settle(source: DecisionSource): void {
    if (this.source !== null || this.failure !== null) return
    this.source = source
    if (this.numbers !== null) this.show(this.bindingIndex())
    if (this.plan.isObserved && !this.isInternal) this.notify()
    if (this.attempt === null) this.request = null
    if (this.waiter !== null) this.wake(this.waiter)
  }

  /** Denies it without asking: there is no room for those before it, so there is none for it. */
  deny(): void {
    for (let index = 0; index < this.plan.shadowFrom; index++) this.set(index, 1, 0, 1, NOT_CHARGED)
    this.settle(this.plan.context.source)
  }

  /** There is no decision: the caller made a mistake, or wants the store's errors. */
  fail(error: unknown): void {
    if (this.source !== null || this.failure !== null) return
    this.failure = { error }
    if (this.waiter !== null) this.waiter.failed(error)
    this.waiter = null
  }

  /** Drops the waiter first: the deny cache may keep the check, and must not keep the waiter alive. */
  private wake(waiter: CheckWaiter): void {
    this.waiter = null
    waiter.settled(this)
  }

  private notify(): void {
    const { context, hasPermits } = this.plan
    if (this.isPeek) return
    if (hasPermits) context.hold(this, this.decision)
    if (this.attempt !== null) return
    this.strike()
    if (context.isListening || this.plan.hasShadow) context.onDecided(this)
  }

  /** Ends the attempts of a request with this one: it is counted and told. Being told to wait is no strike. */
  conclude(): void {
    const { context, hasShadow } = this.plan
    if (context.isListening || hasShadow) context.onDecided(this)
    this.request = null
  }

  /** Lets a ban of the plan know of a denial. */
  strike(): void {
    if (this.plan.hasBan) this.plan.context.mayStrike(this)
  }

  get isSettled(): boolean {
    return this.source !== null || this.failure !== null
  }

  /** Tells `waiter` once it is decided; at once if it is. */
  onSettled(waiter: CheckWaiter): void {
    if (this.source !== null) waiter.settled(this)
    else if (this.failure !== null) waiter.failed(this.failure.error)
    else this.waiter = waiter
  }

  /** The decision, if it is made. */
  get decision(): Decision {
    this.made ??= new Decision(this)
    return this.made
  }

  /** The decision if it is made, otherwise a promise of it. */
  result(): Decision | Promise<Decision> {
    if (this.source !== null) return this.decision
    if (this.failure !== null) throw this.failure.error
    return this.later()
  }

  promise(): Promise<Decision> {
    if (this.source === null) return this.later()
    const { decision } = this
    // Resolving looks for a `then`, a tenth of a decision; the compiler leaves that out once a property was read.
    void decision.allowed
    return Promise.resolve(decision)
  }

  private later(): Promise<Decision> {
    if (this.failure !== null) return Promise.reject(this.failure.error)
    return new Promise((resolve, reject) => {
      this.waiter = new PromisedDecision(resolve, reject)
    })
  }

  // Reading.

  get allowed(): boolean {
    return this.charged >= 0
  }

  /** Whether no limit was looked at, because the failure mode decided or nothing limits the request. */
  get isUnlooked(): boolean {
    return this.source === 'open' || this.source === 'closed' || this.source === 'none'
  }

  /** The alternative that was charged, or else the one that will have room first. */
  decidingAlternative(): number {
    const { ends } = this.plan
    if (this.charged >= 0 || ends.length === 1) return Math.max(0, this.charged)
    let best = 0
    let leastUs = NEVER
    for (let alternative = 0; alternative < ends.length; alternative++) {
      let longestUs = 0
      const end = ends[alternative] as number
      for (let index = this.plan.start(alternative); index < end; index++)
        longestUs = Math.max(longestUs, this.wait(index))
      if (longestUs < leastUs) {
        best = alternative
        leastUs = longestUs
      }
    }
    return best
  }

  /**
   * The limit that decides: all must fit, so the longest wait binds; if all fit, the least remaining does. −1 if there is none:
   * a ban binds only while it lasts.
   */
  bindingIndex(): number {
    const alternative = this.decidingAlternative()
    const from = this.plan.start(alternative)
    const end = this.plan.ends[alternative] ?? 0
    if (from >= end || this.isUnlooked) return -1
    let binding = from
    for (let index = from + 1; index < end; index++) if (this.bindsMore(index, binding)) binding = index
    return this.plan.hasBan && this.isIdleBan(binding) ? -1 : binding
  }

  private bindsMore(one: number, other: number): boolean {
    if (this.wait(one) !== this.wait(other)) return this.wait(one) > this.wait(other)
    if (this.plan.hasBan && this.isIdleBan(one) !== this.isIdleBan(other)) return this.isIdleBan(other)
    if (this.left(one) !== this.left(other)) return this.left(one) < this.left(other)
    return this.resetAfter(one) > this.resetAfter(other)
  }

  private isIdleBan(index: number): boolean {
    return this.wait(index) === 0 && this.isBan(index)
  }

  /** What kind of limit denied it; null if none did. */
  get deniedBy(): Limit['algorithm'] | null {
    const index = this.charged >= 0 ? -1 : this.bindingIndex()
    return index < 0 ? null : (this.plan.limits[index] as NamedLimit).limit.algorithm
  }

  /** Whether a ban denied it. */
  get isBanned(): boolean {
    return this.plan.hasBan && this.deniedBy?.strikes !== undefined
  }

  private isBan(index: number): boolean {
    return (this.plan.limits[index] as NamedLimit).limit.algorithm.strikes !== undefined
  }

  /** What shadow limits charged, whatever became of the request. */
  shadowAdmissions(): Admission[] {
    const { plan } = this
    if (!plan.hasShadow || this.isUnlooked || this.isPeek) return []
    return this.admissionsIn(plan.shadowFrom, plan.limits.length)
  }

  /** The limits that had room for the request; null for one that was denied or only looked at. */
  admissions(): Admissions | null {
    const { plan } = this
    if (this.charged < 0 || this.isPeek) return null
    if (this.isUnlooked) return { binding: [], shadow: [] }
    return {
      binding: this.admissionsIn(plan.start(this.charged), plan.ends[this.charged] as number),
      shadow: this.shadowAdmissions(),
    }
  }

  /** A shadow limit may have had no room; it then counts nothing of the request. */
  private admissionsIn(from: number, end: number): Admission[] {
    const admissions: Admission[] = []
    for (let index = from; index < end; index++) {
      const check = this.checkOf(index)
      const chargedAtUs = this.chargedAt(index)
      if (chargedAtUs !== NOT_CHARGED) admissions.push({ check, chargedAtUs })
      else if (check.cost === 0 && this.wait(index) === 0) admissions.push({ check, chargedAtUs: null })
    }
    return admissions
  }

  /** The permits that were taken, by binding and by shadow limits. */
  permits(): Renewal[] {
    const { plan } = this
    if (this.isUnlooked || this.isPeek) return []
    const binding =
      this.charged < 0 ? [] : this.admissionsIn(plan.start(this.charged), plan.ends[this.charged] as number)
    const all = [...binding, ...this.shadowAdmissions()]
    return all.flatMap(({ check, chargedAtUs }): Renewal[] =>
      chargedAtUs !== null && isPermits(check.limit) ? [{ check, takenAtUs: chargedAtUs }] : [],
    )
  }

  /** The states of the concurrency limits that had no permit left. */
  fullPermits(): string[] {
    const { plan } = this
    if (this.charged >= 0 || this.isUnlooked) return []
    const full: string[] = []
    for (let index = 0; index < plan.shadowFrom; index++) {
      if (isPermits((plan.limits[index] as NamedLimit).limit) && this.wait(index) > 0)
        full.push(stateOf(this.checkOf(index)))
    }
    return full
  }
}

function isPermits({ algorithm }: Limit): boolean {
  return algorithm.renew !== undefined
}

/** A caller that waits with a promise, the only one a decision costs. */
class PromisedDecision implements CheckWaiter {
  constructor(
    private readonly resolve: (decision: Decision) => void,
    private readonly reject: (error: unknown) => void,
  ) {}

  settled(check: PendingCheck): void {
    this.resolve(check.decision)
  }

  failed(error: unknown): void {
    this.reject(error)
  }
}
