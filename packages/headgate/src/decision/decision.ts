import type { Clock } from '../clock.js'
import { keepShape } from '../engine/keep-shape.js'
import { NEVER, type Quota } from '../engine/limit.js'
import type { Answer, Check, Question, Verdict } from '../engine/question.js'
import { SingleQuestion } from '../engine/single.js'
import type { DecidedPolicy, NamedLimit, Policy } from '../policy/policies.js'
import type { Source } from '../store/store.js'
import { bindingIndex, bindingOf, decidingAlternative } from './binding.js'

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
  /** The fleet's switch is off: everything passes. */
  | 'disabled'
  /** The fleet's multiplier is 0: everything passes. */
  | 'paused'
  /** The policy file says that such requests are not limited. */
  | 'skipped'
  /** Every limit that applies is in shadow: `shadow` says what they would have answered. */
  | 'shadow'
  /** The store, or anything at all, could not be asked; the failure mode let the request pass or refused it. */
  | 'store-unavailable'

const ASKED = Symbol('asked')
const SUBJECT = Symbol('subject')
const QUESTION = Symbol('question')
const ANSWER = Symbol('answer')
const POLICY = Symbol('policy')
const CONTEXT = Symbol('context')
const ANSWERED_AT_US = Symbol('answeredAtUs')
const RESET_AT = Symbol('resetAt')
const VERDICTS = Symbol('verdicts')

/** A store that is back is found within a second. */
const CLOSED_RETRY_AFTER_MS = 1_000

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

/** What all decisions of a limiter have in common. */
export interface DecisionContext {
  readonly clock: Clock
  readonly source: Source
}

/**
 * The answer to "may this request pass?": a value that can be kept, logged and sent (`JSON.stringify` shows it whole).
 * Durations are rounded up, so that a client that obeys them is not denied again.
 */
export class Decision {
  // Most callers read two or three of the properties below, so none is worked out before it is read.
  // Under symbols rather than as private fields, which would cost a tenth of a decision; nobody meets them by accident.
  // Declared only: an initialiser would write every field twice.
  /** Null for the plainest question, which is made again when somebody looks. */
  declare private readonly [ASKED]: Question | null
  declare private readonly [SUBJECT]: string | undefined
  declare private readonly [ANSWER]: Answer
  declare private readonly [POLICY]: Policy | DecidedPolicy
  declare private readonly [CONTEXT]: DecisionContext
  /** Reading of the clock when the store answered, where the answer does not carry it. */
  declare private readonly [ANSWERED_AT_US]: number | undefined
  declare private [RESET_AT]: number | undefined
  declare private [VERDICTS]: readonly LimitVerdict[] | undefined
  /** Units the request takes. */
  declare readonly cost: number

  /** Without a question: the only limit of the policy, in the scope `global`, for `subject`. */
  constructor(
    question: Question | null,
    answer: Answer,
    policy: Policy | DecidedPolicy,
    cost: number,
    context: DecisionContext,
    subject?: string,
  ) {
    this[ASKED] = question
    this[SUBJECT] = subject
    this[ANSWER] = answer
    this[POLICY] = policy
    this[CONTEXT] = context
    this.cost = cost
    this[ANSWERED_AT_US] = answer.nowUs === undefined ? context.clock.nowUs() : undefined
    this[RESET_AT] = undefined
    this[VERDICTS] = undefined
  }

  private get [QUESTION](): Question {
    const asked = this[ASKED]
    if (asked !== null) return asked
    const { name, limit } = this[POLICY].limits[0] as NamedLimit
    return new SingleQuestion(this[SUBJECT] as string, 'global', name, limit, this.cost)
  }

  get allowed(): boolean {
    return this[ANSWER].charged >= 0
  }

  /** Units the binding limit allows in its window; Infinity when nothing limits this caller. */
  get limit(): number {
    return this.binding?.quota.limit ?? Number.POSITIVE_INFINITY
  }

  /** Units left now. */
  get remaining(): number {
    return bindingOf(this[ANSWER])?.remaining ?? Number.POSITIVE_INFINITY
  }

  /** How long until everything is available again. */
  get resetAfterMs(): number {
    return toMs(bindingOf(this[ANSWER])?.resetAfterUs ?? 0)
  }

  /** Unix time in milliseconds at which everything is available again. */
  get resetAt(): number {
    if (this[RESET_AT] === undefined) {
      const { clock } = this[CONTEXT]
      const sinceUs = clock.nowUs() - (this[ANSWER].nowUs ?? this[ANSWERED_AT_US] ?? 0)
      this[RESET_AT] = clock.unixMs() + this.resetAfterMs - Math.round(sinceUs / 1000)
    }
    return this[RESET_AT]
  }

  /** 0 when allowed; null when no waiting helps. */
  get retryAfterMs(): number | null {
    if (this.source === 'closed') return CLOSED_RETRY_AFTER_MS
    const retryAfterUs = this.allowed ? 0 : (bindingOf(this[ANSWER])?.retryAfterUs ?? 0)
    return retryAfterUs === NEVER ? null : toMs(retryAfterUs)
  }

  /** The policy of the limit that binds. */
  get policy(): string {
    const name = this.binding?.name
    return name === undefined ? this[POLICY].name : policyOf(name)
  }

  /** The rule of the policy file that spoke; null where none was asked. */
  get rule(): string | null {
    const policy = this[POLICY]
    return 'rule' in policy ? policy.rule : null
  }

  /** How the policy file wants the quota to be advertised. */
  get headerStyle(): 'legacy' | 'ietf' | 'both' | 'none' | null {
    const policy = this[POLICY]
    return 'headers' in policy ? policy.headers : null
  }

  get tier(): string | null {
    return this[POLICY].tier
  }

  get source(): Source {
    return this[ANSWER].source ?? this[CONTEXT].source
  }

  /** Decided from units this process had taken in advance: `remaining` is what this process knows of. */
  get leased(): boolean {
    return this[ANSWER].leased === true
  }

  get reason(): Reason {
    if (this.source === 'open' || this.source === 'closed') return 'store-unavailable'
    const policy = this[POLICY]
    const unasked = 'unasked' in policy ? policy.unasked : null
    return unasked ?? reasonOf(this.allowed, bindingOf(this[ANSWER]))
  }

  /** The limit that decided: of a denial the one to wait for longest, otherwise the one with least left. */
  get binding(): LimitVerdict | null {
    const answer = this[ANSWER]
    return this.verdicts[bindingIndex(answer.verdicts[decidingAlternative(answer)] ?? [])] ?? null
  }

  /** The answer of every limit of the alternative that decided. */
  get verdicts(): readonly LimitVerdict[] {
    this[VERDICTS] ??= verdictsOf(this[QUESTION], this[ANSWER])
    return this[VERDICTS]
  }

  /** What shadow limits would have said; they never bind. */
  get shadow(): readonly LimitVerdict[] {
    const [question, answer] = [this[QUESTION], this[ANSWER]]
    return answer.shadow.map((verdict, index) => toLimitVerdict(question.shadow[index] as Check, verdict))
  }

  toJSON(): DecisionValue {
    const { allowed, limit, remaining, resetAt, resetAfterMs, retryAfterMs, cost, policy, tier } = this
    const { rule, source, leased, reason, binding, verdicts, shadow } = this
    return {
      ...{ allowed, limit, remaining, resetAt, resetAfterMs, retryAfterMs, cost, policy, tier },
      ...{ rule, source, leased, reason, binding, verdicts, shadow },
    }
  }

  /** What `console.log` shows in Node. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionValue {
    return this.toJSON()
  }

  /** The charges this decision made, for `limiter.refund`. */
  static chargesOf(decision: Decision): readonly { check: Check; chargedAtUs: number }[] {
    const [question, answer] = [decision[QUESTION], decision[ANSWER]]
    if (answer.charged < 0) return []
    const checks = question.alternatives[answer.charged] ?? []
    const verdicts = answer.verdicts[answer.charged] ?? []
    return checks.flatMap((check, index) => {
      const chargedAtUs = verdicts[index]?.chargedAtUs ?? null
      return chargedAtUs === null ? [] : [{ check, chargedAtUs }]
    })
  }
}

/** A decision as a plain object. */
export type DecisionValue = Pick<
  Decision,
  | 'allowed'
  | 'limit'
  | 'remaining'
  | 'resetAt'
  | 'resetAfterMs'
  | 'retryAfterMs'
  | 'cost'
  | 'policy'
  | 'tier'
  | 'rule'
  | 'source'
  | 'leased'
  | 'reason'
  | 'binding'
  | 'verdicts'
  | 'shadow'
>

/** The policy of a limit's name, `<policy>.<limit id>`. */
export function policyOf(name: string): string {
  return name.slice(0, name.indexOf('.'))
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

/** Of the alternative that decided. */
function verdictsOf(question: Question, answer: Answer): readonly LimitVerdict[] {
  const alternative = decidingAlternative(answer)
  const checks = question.alternatives[alternative] ?? []
  const verdicts = answer.verdicts[alternative] ?? []
  return verdicts.map((verdict, index) => toLimitVerdict(checks[index] as Check, verdict))
}

function reasonOf(allowed: boolean, binding: Verdict | undefined): Reason {
  if (binding === undefined) return 'unlimited'
  if (allowed) return 'within-limit'
  return binding.retryAfterUs === NEVER ? 'exceeds-capacity' : 'limit-exceeded'
}

keepShape(
  new Decision(
    { alternatives: [], shadow: [] },
    { charged: 0, verdicts: [], shadow: [], nowUs: 0 },
    { name: '', tier: null, limits: [] },
    1,
    { clock: { nowUs: () => 0, unixMs: () => 0 }, source: 'memory' },
  ),
)
