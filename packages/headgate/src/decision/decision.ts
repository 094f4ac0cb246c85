import { NEVER, type Quota } from '../algorithms/algorithm.js'
import type { DecisionSource } from '../check/check.js'
import type { PendingCheck } from '../check/pending-check.js'
import type { NamedLimit } from '../check/plan.js'
import type { HeaderStyle } from '../policy/config.js'
import type { RefundBound } from '../policy/refund-rule.js'
import { includesStatus } from '../policy/statuses.js'
import type { MeterConfig } from '../policy/token-meters.js'
import { referenceOf } from '../subject/digest.js'

/** The answer of one limit. */
export interface LimitVerdict {
  /** `<policy>.<limit id>`, for a network around an IPv6 caller followed by its size: `<policy>.<limit id>/56`. */
  readonly name: string
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  /** 0 if it had room; null if no wait is long enough. */
  readonly retryAfterMs: number | null
  readonly resetAfterMs: number
  readonly quota: Quota
}

/** The permits of a decision, to be given back. */
export interface HeldPermits {
  /** Gives them back, once; never rejects. */
  release(): Promise<void>
  /** Stops renewing them. */
  abandon(): void
}

const RELEASED: Promise<void> = Promise.resolve()
/** A store that is back is found within a second. */
const CLOSED_RETRY_AFTER_MS = 1_000
const NO_VERDICTS: readonly LimitVerdict[] = []

/**
 * The answer to "may this request pass?": a value that can be kept, logged and sent (`JSON.stringify` shows all of
 * it). Durations are rounded up, so that a client that obeys them is not denied again. Everything is read from the
 * check when somebody asks for it.
 */
export class Decision {
  readonly #check: PendingCheck
  /** The clock when the numbers were true: for a store elsewhere, at the latest when they came. */
  readonly #atUs: number
  /** Kept once read, because it must not move with the clock. */
  #resetAt: number | null = null
  #verdicts: readonly LimitVerdict[] | null = null
  #held: HeldPermits | null = null

  constructor(check: PendingCheck) {
    this.#check = check
    this.#atUs = check.source === 'memory' ? check.atUs : check.plan.context.clock.nowUs()
  }

  get allowed(): boolean {
    return this.#check.charged >= 0
  }

  /** The cost of the request. */
  get cost(): number {
    return this.#check.cost
  }

  /** Units the binding limit allows in its window; Infinity if nothing limits this caller. */
  get limit(): number {
    return this.binding?.quota.limit ?? this.#unlimited
  }

  /** Units left now; Infinity if nothing limits this caller. */
  get remaining(): number {
    const check = this.#check
    return check.plan.isSingle && !check.isUnlooked
      ? check.remaining
      : (this.binding?.remaining ?? this.#unlimited)
  }

  /** What is left where no limit was asked: nothing, if an operator has banned the caller. */
  get #unlimited(): number {
    return this.#check.plan.labels.bypass === 'banned' ? 0 : Number.POSITIVE_INFINITY
  }

  /** 0 if allowed; null if no wait is long enough. */
  get retryAfterMs(): number | null {
    const check = this.#check
    if (check.charged >= 0) return 0
    // A denial always has a wait of at least a millisecond, because 0 means allowed.
    return check.source === 'closed' ? CLOSED_RETRY_AFTER_MS : toWaitMs(Math.max(1, check.waitUs))
  }

  /** How long until everything is available again. */
  get resetAfterMs(): number {
    return this.#check.isUnlooked ? 0 : toMs(this.#check.resetAfterUs)
  }

  /** The Unix time in milliseconds at which everything is available again. */
  get resetAt(): number {
    if (this.#resetAt === null) {
      const { clock } = this.#check.plan.context
      this.#resetAt = clock.unixMs() + this.resetAfterMs - Math.floor((clock.nowUs() - this.#atUs) / 1000)
    }
    return this.#resetAt
  }

  /** The policy of the binding limit. */
  get policy(): string {
    const name = this.binding?.name
    return name === undefined ? this.#check.plan.labels.policy : policyOf(name)
  }

  /** The rule of the policy file that applied; null if none was asked. */
  get rule(): string | null {
    return this.#check.plan.labels.rule
  }

  /** Who was asked about, by the name in the store: without secrets. Null if no limit was asked. */
  get subject(): string | null {
    const { plan, subject } = this.#check
    if (plan.labels.bypass === 'banned') return subject
    return (plan.ends[0] ?? 0) === 0 ? null : this.#check.subjectOf(0)
  }

  /**
   * Twelve characters that stand for the caller of a counted denial, by which operators find it. Null for any
   * other decision.
   */
  get reference(): string | null {
    const { plan } = this.#check
    const { subject } = this
    return this.allowed || plan.context.recorder === null || subject === null ? null : referenceOf(subject)
  }

  /** How the policy file wants the quota to be advertised. */
  get headerStyle(): HeaderStyle | null {
    return this.#check.plan.labels.headers
  }

  /** Whether the policy file forgets what the caller has used for any status. */
  get isResettable(): boolean {
    return this.#check.plan.labels.resetIf !== null
  }

  /** Whether the policy file forgets what the caller has used for this status; adapters then call `forgive`. */
  resetsOn(status: number): boolean {
    const { resetIf } = this.#check.plan.labels
    return resetIf !== null && includesStatus(resetIf, status)
  }

  /** Whether the policy file gives back the charge for any status. */
  get isRefundable(): boolean {
    return this.#check.plan.labels.refundIf !== null
  }

  /** Whether the policy file gives back the charge for this status; adapters then call `refund`. */
  refundsOn(status: number): boolean {
    const { refundIf } = this.#check.plan.labels
    return refundIf !== null && includesStatus(refundIf.statuses, status)
  }

  /** How much such responses give back at most, by the policy file; adapters pass it to `refund`. */
  get refundAtMost(): readonly RefundBound[] {
    return this.#check.plan.labels.refundIf?.atMost ?? []
  }

  /** The tokens of a model that such a request reserves, by the policy file; adapters then call `reserveTokens`. */
  get tokens(): readonly MeterConfig[] {
    return this.#check.plan.labels.tokens
  }

  /** How long the request was held until it was decided; 0 if it did not wait. */
  get waitedMs(): number {
    const { attempt } = this.#check
    return attempt?.hasWaited ? toMs(this.#atUs - attempt.sinceUs) : 0
  }

  get tier(): string | null {
    return this.#check.plan.labels.tier
  }

  get source(): DecisionSource {
    return this.#check.source as DecisionSource
  }

  /** Whether it was decided from units leased by this process. `remaining` is then what this process knows of. */
  get leased(): boolean {
    return this.#check.isLeased
  }

  get reason(): Reason {
    const check = this.#check
    if (check.source === 'open' || check.source === 'closed') return 'store-unavailable'
    const { bypass } = check.plan.labels
    if (bypass !== null) return bypass
    if (check.bindingIndex() < 0) return 'unlimited'
    if (check.charged >= 0) return 'within-limit'
    if (check.isBanned) return 'banned'
    return check.waitUs === NEVER ? 'exceeds-capacity' : 'limit-exceeded'
  }

  /** The limit that decided: for a denial the one with the longest wait, otherwise the one with the least left. */
  get binding(): LimitVerdict | null {
    const check = this.#check
    const index = check.bindingIndex()
    return index < 0 ? null : (this.verdicts[index - check.plan.start(check.decidingAlternative())] ?? null)
  }

  /** The answer of every limit of the alternative that decided. */
  get verdicts(): readonly LimitVerdict[] {
    this.#verdicts ??= this.#verdictsOfAlternative()
    return this.#verdicts
  }

  #verdictsOfAlternative(): readonly LimitVerdict[] {
    const check = this.#check
    if (check.isUnlooked) return NO_VERDICTS
    const alternative = check.decidingAlternative()
    return verdictsOf(check, check.plan.start(alternative), check.plan.ends[alternative] ?? 0)
  }

  /** The verdicts of shadow limits, which never bind. */
  get shadow(): readonly LimitVerdict[] {
    const { plan, isUnlooked } = this.#check
    return isUnlooked ? NO_VERDICTS : verdictsOf(this.#check, plan.shadowFrom, plan.limits.length)
  }

  /** Whether it holds a permit of a concurrency limit, which must be released. */
  get isHeld(): boolean {
    return this.#held !== null
  }

  /**
   * Marks the request as ended, so that its permit is free for another; settles when it is. Does nothing the second
   * time, or if no permit was taken. Never rejects: a permit that cannot be given back expires.
   */
  release(): Promise<void> {
    return this.#held?.release() ?? RELEASED
  }

  /**
   * Stops renewing the permit, because nobody will learn when the request ends. It is freed when its time is up, or
   * by an earlier `release()`.
   */
  abandon(): void {
    this.#held?.abandon()
  }

  /** Every field, including those that are worked out when read. */
  toJSON(): DecisionValue {
    return Object.fromEntries(FIELDS.map(field => [field, this[field]])) as unknown as DecisionValue
  }

  /** The value that `console.log` shows in Node. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionValue {
    return this.toJSON()
  }

  /** The check behind a decision, for the limiter. */
  static checkOf(decision: Decision): PendingCheck {
    return decision.#check
  }

  /** Lets a decision hold permits, in addition to those it has. */
  static hold(decision: Decision, permits: HeldPermits): void {
    const held = decision.#held
    if (held === null) {
      decision.#held = permits
      return
    }
    decision.#held = {
      async release() {
        await Promise.all([held.release(), permits.release()])
      },
      abandon() {
        held.abandon()
        permits.abandon()
      },
    }
  }
}

const FIELDS = [
  'allowed',
  'limit',
  'remaining',
  'resetAt',
  'resetAfterMs',
  'retryAfterMs',
  'cost',
  'waitedMs',
  'policy',
  'tier',
  'rule',
  'source',
  'leased',
  'reason',
  'binding',
  'verdicts',
  'shadow',
] as const satisfies readonly (keyof Decision)[]

/** A decision as a plain object. */
export type DecisionValue = Pick<Decision, (typeof FIELDS)[number]>

function verdictsOf(check: PendingCheck, from: number, end: number): LimitVerdict[] {
  // Of the right size at once: a list that grows has room for 17.
  const verdicts = new Array<LimitVerdict>(end - from)
  for (let index = from; index < end; index++) verdicts[index - from] = verdictOf(check, index)
  return verdicts
}

/** The answer of one limit of a plan. */
export function verdictOf(check: PendingCheck, index: number): LimitVerdict {
  const { name, limit } = check.plan.limits[index] as NamedLimit
  return {
    name,
    allowed: check.wait(index) === 0,
    limit: limit.limit,
    remaining: check.left(index),
    retryAfterMs: toWaitMs(check.wait(index)),
    resetAfterMs: toMs(check.resetAfter(index)),
    quota: limit.quota,
  }
}

/** Whether it is about a network around an IPv6 caller, `<policy>.<limit id>/<bits>`, not the caller itself. */
export function isWider({ name }: Pick<LimitVerdict, 'name'>): boolean {
  return name.includes('/')
}

/** Returns the policy in a limit's name, `<policy>.<limit id>`. */
export function policyOf(name: string): string {
  return name.slice(0, name.indexOf('.'))
}

/** Rounded up: a client that waits exactly this long must not be a microsecond early. */
export function toMs(us: number): number {
  return Math.ceil(us / 1000)
}

/** The same for a wait, which may be infinite. */
export function toWaitMs(waitUs: number): number | null {
  return waitUs === NEVER ? null : toMs(waitUs)
}

/** Why a decision came out as it did. */
export type Reason =
  /** Every limit had room. */
  | 'within-limit'
  /** A limit is used up; `retryAfterMs` says when there is room again. */
  | 'limit-exceeded'
  /** The cost is above what the limit could ever give, so no wait is long enough. */
  | 'exceeds-capacity'
  /** The caller was denied too often and is banned; `retryAfterMs` says until when. */
  | 'banned'
  /** Nothing limits this caller. */
  | 'unlimited'
  /** The fleet's switch is off: everything passes. */
  | 'disabled'
  /** The fleet's multiplier is 0: everything passes. */
  | 'paused'
  /** The policy file says that such requests are not limited. */
  | 'skipped'
  /** Every limit that applies is in shadow: `shadow` has their verdicts. */
  | 'shadow'
  /** The store could not be asked, or something failed earlier; the failure mode decided. */
  | 'store-unavailable'
