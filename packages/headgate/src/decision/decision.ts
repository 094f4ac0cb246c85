import { NEVER } from '../algorithms/algorithm.js'
import { SingleAnswer, SingleQuestion } from '../engine/single-question.js'
import { keepV8Shape } from '../fast-path/keep-v8-shape.js'
import type { HeaderStyle } from '../policy/config.js'
import type { DecidedPolicy, NamedLimit, Policy } from '../policy/policies.js'
import type { RefundBound } from '../policy/refund-rule.js'
import { includesStatus } from '../policy/statuses.js'
import type { Source } from '../store/store.js'
import { handleOf } from '../subject/handle.js'
import type { Clock } from '../time/clock.js'
import { type DecisionValue, decisionValue } from './decision-value.js'
import { type Reason, reasonOf } from './reason.js'
import {
  bindingOf,
  type HeldPlace,
  type HeldPlaces,
  LazyVerdicts,
  type LimitVerdict,
  policyOf,
} from './verdicts.js'

const REMAINING = Symbol('remaining')
const RETRY_AFTER_MS = Symbol('retryAfterMs')
const RESET_AFTER_MS = Symbol('resetAfterMs')
const ASKED = Symbol('asked')
const POLICY = Symbol('policy')
const CONTEXT = Symbol('context')
const AT_US = Symbol('atUs')
const VERDICTS = Symbol('verdicts')

const RELEASED: Promise<void> = Promise.resolve()

/** The context that all decisions of a limiter share. */
export interface DecisionContext {
  readonly clock: Clock
  readonly source: Source
  /** Holds the places that decisions took. */
  readonly places?: { hold(decision: Decision, places: readonly HeldPlace[]): HeldPlaces }
  /** Whether decisions are counted, so that a refusal can be looked up. */
  readonly isCounted?: boolean
}

/**
 * The answer to "may this request pass?": a value that can be kept, logged and sent (`JSON.stringify` shows all of
 * it). Durations are rounded up, so that a client that obeys them is not denied again.
 */
export class Decision {
  // Most callers read two or three numbers, so everything else is computed on access. Fields are under symbols
  // instead of private, which would cost a tenth of a decision; nobody accesses them by accident. They are only
  // declared, because an initialiser would write every field twice.
  declare private readonly [REMAINING]: number
  declare private readonly [RETRY_AFTER_MS]: number | null
  declare private readonly [RESET_AFTER_MS]: number
  /** For the plainest question (see the constructor) only the subject; the rest is made on access. */
  declare private [ASKED]: LazyVerdicts | string
  declare private readonly [POLICY]: Policy | DecidedPolicy
  declare private readonly [CONTEXT]: DecisionContext
  /** The clock reading when the store answered. */
  declare private readonly [AT_US]: number

  /**
   * For the plainest question, one unit of the policy's only limit in the scope `global`, `asked` is the subject.
   */
  constructor(
    asked: LazyVerdicts | string,
    policy: Policy | DecidedPolicy,
    context: DecisionContext,
    remaining: number,
    retryAfterMs: number | null,
    resetAfterMs: number,
    atUs: number,
  ) {
    this[REMAINING] = remaining
    this[RETRY_AFTER_MS] = retryAfterMs
    this[RESET_AFTER_MS] = resetAfterMs
    this[ASKED] = asked
    this[POLICY] = policy
    this[CONTEXT] = context
    this[AT_US] = atUs
  }

  static {
    const policy = { name: '', tier: null, limits: [] }
    const context = { clock: { nowUs: () => 0, unixMs: () => 0 }, source: 'memory' } as const
    // With numbers alone, V8 would type a field as double after the first large one and allocate an object for
    // every number from then on. A field that has held something else stores small numbers directly.
    const shape = new Decision('', policy, context, 0, 0, 0, 0.5)
    keepV8Shape(Object.assign(shape, { [REMAINING]: null, [RETRY_AFTER_MS]: null, [RESET_AFTER_MS]: null }))
  }

  private get [VERDICTS](): LazyVerdicts {
    const asked = this[ASKED]
    if (typeof asked !== 'string') return asked
    const { name, limit } = this[POLICY].limits[0] as NamedLimit
    const { remaining, retryAfterMs, resetAfterMs, allowed, [AT_US]: atUs } = this
    const retryAfterUs = retryAfterMs === null ? NEVER : retryAfterMs * 1000
    const verdicts = new LazyVerdicts(
      new SingleQuestion(asked, 'global', name, limit, 1),
      new SingleAnswer(remaining, retryAfterUs, resetAfterMs * 1000, allowed ? atUs : null, atUs),
      1,
    )
    this[ASKED] = verdicts
    return verdicts
  }

  get allowed(): boolean {
    return this[RETRY_AFTER_MS] === 0
  }

  /** The cost of the request. */
  get cost(): number {
    const asked = this[ASKED]
    return typeof asked === 'string' ? 1 : asked.cost
  }

  /** Units the binding limit allows in its window; Infinity if nothing limits this caller. */
  get limit(): number {
    return this.binding?.quota.limit ?? Number.POSITIVE_INFINITY
  }

  /** Units left now; Infinity if nothing limits this caller. */
  get remaining(): number {
    return this[REMAINING]
  }

  /** 0 if allowed; null if no wait is long enough. */
  get retryAfterMs(): number | null {
    return this[RETRY_AFTER_MS]
  }

  /** How long until everything is available again. */
  get resetAfterMs(): number {
    return this[RESET_AFTER_MS]
  }

  /** The Unix time in milliseconds at which everything is available again. */
  get resetAt(): number {
    const verdicts = this[VERDICTS]
    if (verdicts.resetAt === null) {
      const { clock } = this[CONTEXT]
      const sinceUs = clock.nowUs() - this[AT_US]
      verdicts.resetAt = clock.unixMs() + this.resetAfterMs - Math.floor(sinceUs / 1000)
    }
    return verdicts.resetAt
  }

  /** The policy of the binding limit. */
  get policy(): string {
    const name = this.binding?.name
    return name === undefined ? this[POLICY].name : policyOf(name)
  }

  /** The rule of the policy file that applied; null if none was asked. */
  get rule(): string | null {
    const policy = this[POLICY]
    return 'rule' in policy ? policy.rule : null
  }

  /**
   * Twelve characters that stand for the caller of a counted refusal, by which operators find it. Null for any
   * other decision.
   */
  get reference(): string | null {
    if (this.allowed || this[CONTEXT].isCounted !== true) return null
    const asked = this[ASKED]
    const subject = typeof asked === 'string' ? asked : asked.question.alternatives[0]?.[0]?.subject
    return subject === undefined ? null : handleOf(subject)
  }

  /** How the policy file wants the quota to be advertised. */
  get headerStyle(): HeaderStyle | null {
    const policy = this[POLICY]
    return 'headers' in policy ? policy.headers : null
  }

  /** Whether the policy file gives back the charge for any status. */
  get isRefundable(): boolean {
    const policy = this[POLICY]
    return 'refundIf' in policy && policy.refundIf !== null
  }

  /** Whether the policy file gives back the charge for this status; adapters then call `refund`. */
  isFreeIf(status: number): boolean {
    const policy = this[POLICY]
    return (
      'refundIf' in policy && policy.refundIf !== null && includesStatus(policy.refundIf.statuses, status)
    )
  }

  /** How much such responses give back at most, by the policy file; adapters pass it to `refund`. */
  get refundAtMost(): readonly RefundBound[] {
    const policy = this[POLICY]
    return ('refundIf' in policy ? policy.refundIf?.atMost : undefined) ?? []
  }

  get tier(): string | null {
    return this[POLICY].tier
  }

  get source(): Source {
    const asked = this[ASKED]
    return (typeof asked === 'string' ? undefined : asked.answer.source) ?? this[CONTEXT].source
  }

  /** Whether it was decided from units leased by this process. `remaining` is then what this process knows of. */
  get leased(): boolean {
    const asked = this[ASKED]
    return typeof asked !== 'string' && asked.answer.leased === true
  }

  get reason(): Reason {
    if (this.source === 'open' || this.source === 'closed') return 'store-unavailable'
    const policy = this[POLICY]
    const unasked = 'unasked' in policy ? policy.unasked : null
    return unasked ?? reasonOf(this.allowed, bindingOf(this[VERDICTS].answer))
  }

  /** The limit that decided: for a denial the one with the longest wait, otherwise the one with the least left. */
  get binding(): LimitVerdict | null {
    return this[VERDICTS].binding
  }

  /** The answer of every limit of the alternative that decided. */
  get verdicts(): readonly LimitVerdict[] {
    return this[VERDICTS].verdicts
  }

  /** The verdicts of shadow limits, which never bind. */
  get shadow(): readonly LimitVerdict[] {
    return this[VERDICTS].shadow
  }

  /** Whether it holds a place of a concurrency limit, which must be released. */
  get isHeld(): boolean {
    const asked = this[ASKED]
    return typeof asked !== 'string' && asked.held !== null
  }

  /**
   * Marks the request as ended, so that its place is free for another; settles when it is. Does nothing the second
   * time, if no place was taken, or after `close()`, which gave it back. Never rejects: a place that cannot be given
   * back expires.
   */
  release(): Promise<void> {
    const asked = this[ASKED]
    return (typeof asked === 'string' ? null : asked.held)?.release() ?? RELEASED
  }

  /**
   * Stops renewing the place, because nobody will learn when the request ends. It is freed when its time is up, or
   * by an earlier `release()`.
   */
  letExpire(): void {
    const asked = this[ASKED]
    if (typeof asked !== 'string') asked.held?.letExpire()
  }

  toJSON(): DecisionValue {
    return decisionValue(this)
  }

  /** The value that `console.log` shows in Node. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionValue {
    return this.toJSON()
  }

  /** Returns the clock reading when a decision was made. */
  static atUsOf(decision: Decision): number {
    return decision[AT_US]
  }

  /** Releases another decision, which was made beside this one, together with it. */
  static releaseWith(decision: Decision, other: Promise<Decision | null>): void {
    const verdicts = decision[VERDICTS]
    const { held } = verdicts
    verdicts.held = {
      async release() {
        await Promise.all([held?.release(), other.then(beside => beside?.release())])
      },
      letExpire() {
        held?.letExpire()
        void other.then(beside => beside?.letExpire())
      },
    }
  }

  /** Returns the states of the concurrency limits for whose places a denied request has to wait. */
  static fullPlacesOf(decision: Decision): LazyVerdicts['fullPlaces'] {
    return decision[VERDICTS].fullPlaces
  }

  /** Returns the limits that had room for this decision's request, for `limiter.refund` and `limiter.settle`. */
  static admissionsOf(decision: Decision): LazyVerdicts['admissions'] {
    return decision[VERDICTS].admissions
  }
}
