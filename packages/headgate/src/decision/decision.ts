import { NEVER, type Quota } from '../engine/limit.js'
import type { Answer, Check, Question, Verdict } from '../engine/question.js'
import type { Policy } from '../policy/policies.js'
import type { Source } from '../store/store.js'

/** Why a decision came out as it did. */
export type Reason =
  /** Every limit had room. */
  | 'within-limit'
  /** A limit is used up; `retryAfterMs` says when there is room again. */
  | 'limit-exceeded'
  /** The cost is above what the limit could ever give: no waiting helps. */
  | 'exceeds-capacity'
  /** Nothing limits this caller. */
  | 'unlimited'

/** The answer of one limit. */
export interface LimitVerdict {
  /** `<policy>.<limit id>`. */
  readonly name: string
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number | null
  readonly resetAfterMs: number
  readonly quota: Quota
}

/** What a decision is made of; kept by the decision itself so that it can be refunded. */
export interface DecisionParts {
  readonly question: Question
  readonly answer: Answer
  readonly policy: Policy
  readonly cost: number
  readonly source: Source
  readonly unixMs: number
}

/**
 * The answer to "may this request pass?". A plain value: it can be kept, logged and sent.
 * Durations are rounded up, so that a client that obeys them is not denied again.
 */
export class Decision {
  readonly allowed: boolean
  /** Units the binding limit allows in its window. */
  readonly limit: number
  /** Units left now. */
  readonly remaining: number
  /** Unix time in milliseconds at which everything is available again. */
  readonly resetAt: number
  readonly resetAfterMs: number
  /** 0 when allowed; null when no waiting helps. */
  readonly retryAfterMs: number | null
  readonly cost: number
  readonly policy: string
  readonly tier: string | null
  readonly source: Source
  readonly reason: Reason
  readonly #parts: DecisionParts
  readonly #binding: number
  readonly #alternative: number

  constructor(parts: DecisionParts) {
    const { answer, question } = parts
    this.#parts = parts
    this.#alternative = answer.charged >= 0 ? answer.charged : soonest(answer)
    const verdicts = answer.verdicts[this.#alternative] ?? []
    this.#binding = bindingIndex(verdicts)
    const binding = verdicts[this.#binding]
    const check = question.alternatives[this.#alternative]?.[this.#binding]
    const retryAfterUs = answer.charged >= 0 ? 0 : (binding?.retryAfterUs ?? 0)
    this.allowed = answer.charged >= 0
    this.limit = check?.limit.quota.limit ?? Number.POSITIVE_INFINITY
    this.remaining = binding?.remaining ?? Number.POSITIVE_INFINITY
    this.resetAfterMs = toMs(binding?.resetAfterUs ?? 0)
    this.resetAt = parts.unixMs + this.resetAfterMs
    this.retryAfterMs = retryAfterUs === NEVER ? null : toMs(retryAfterUs)
    this.cost = parts.cost
    this.policy = parts.policy.name
    this.tier = parts.policy.tier
    this.source = parts.source
    this.reason = reasonOf(this.allowed, binding)
  }

  /** The limit that decided: of a denial the one to wait for longest, otherwise the one with least left. */
  get binding(): LimitVerdict | null {
    return this.verdicts[this.#binding] ?? null
  }

  /** The answer of every limit of the alternative that decided. */
  get verdicts(): readonly LimitVerdict[] {
    const checks = this.#parts.question.alternatives[this.#alternative] ?? []
    const verdicts = this.#parts.answer.verdicts[this.#alternative] ?? []
    return verdicts.map((verdict, index) => toLimitVerdict(checks[index] as Check, verdict))
  }

  /** What shadow limits would have said; they never bind. */
  get shadow(): readonly LimitVerdict[] {
    const { question, answer } = this.#parts
    return answer.shadow.map((verdict, index) => toLimitVerdict(question.shadow[index] as Check, verdict))
  }

  toJSON(): object {
    return { ...this, binding: this.binding, verdicts: this.verdicts, shadow: this.shadow }
  }

  /** The charges this decision made, for `limiter.refund`. */
  static chargesOf(decision: Decision): readonly { check: Check; chargedAtUs: number }[] {
    const { question, answer } = decision.#parts
    if (answer.charged < 0) return []
    const checks = question.alternatives[answer.charged] ?? []
    const verdicts = answer.verdicts[answer.charged] ?? []
    return checks.flatMap((check, index) => {
      const chargedAtUs = verdicts[index]?.chargedAtUs ?? null
      return chargedAtUs === null ? [] : [{ check, chargedAtUs }]
    })
  }
}

/** Rounded up: a client that waits exactly this long must not be a microsecond early. */
function toMs(us: number): number {
  return Math.ceil(us / 1000)
}

function toLimitVerdict(check: Check, verdict: Verdict): LimitVerdict {
  return {
    name: check.name,
    allowed: verdict.allowed,
    limit: check.limit.limit,
    remaining: verdict.remaining,
    retryAfterMs: verdict.retryAfterUs === NEVER ? null : toMs(verdict.retryAfterUs),
    resetAfterMs: toMs(verdict.resetAfterUs),
    quota: check.limit.quota,
  }
}

function reasonOf(allowed: boolean, binding: Verdict | undefined): Reason {
  if (binding === undefined) return 'unlimited'
  if (allowed) return 'within-limit'
  return binding.retryAfterUs === NEVER ? 'exceeds-capacity' : 'limit-exceeded'
}

/** The alternative that will have room first. */
function soonest(answer: Answer): number {
  let best = 0
  let bestWaitUs = NEVER
  for (const [index, verdicts] of answer.verdicts.entries()) {
    const waitUs = verdicts[bindingIndex(verdicts)]?.retryAfterUs ?? 0
    if (waitUs < bestWaitUs) {
      best = index
      bestWaitUs = waitUs
    }
  }
  return best
}

/** All checks must fit, so the longest wait binds; among those that fit the least remaining does. */
function bindingIndex(verdicts: readonly Verdict[]): number {
  let binding = 0
  for (let index = 1; index < verdicts.length; index++) {
    if (bindsMore(verdicts[index] as Verdict, verdicts[binding] as Verdict)) binding = index
  }
  return binding
}

function bindsMore(verdict: Verdict, other: Verdict): boolean {
  if (verdict.retryAfterUs !== other.retryAfterUs) return verdict.retryAfterUs > other.retryAfterUs
  if (verdict.remaining !== other.remaining) return verdict.remaining < other.remaining
  return verdict.resetAfterUs > other.resetAfterUs
}
