/** Verdicts as a caller sees them: each limit's own, the binding one, and lazily computed. */

import { NEVER, type Quota } from '../algorithms/algorithm.js'
import { type Answer, type Check, type Question, stateOf, type Verdict } from '../engine/question.js'
import { onlyVerdictOf, someCheck } from '../engine/single-question.js'
import { keepV8Shape } from '../fast-path/keep-v8-shape.js'

/** The answer of one limit. */
export interface LimitVerdict {
  /** `<policy>.<limit id>`, for a network around an IPv6 caller followed by its size: `<policy>.<limit id>/56`. */
  readonly name: string
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number | null
  readonly resetAfterMs: number
  readonly quota: Quota
}

/** Converts a verdict to the form callers see. */
export function toLimitVerdict(check: Check, verdict: Verdict): LimitVerdict {
  return {
    name: check.name,
    allowed: verdict.allowed,
    limit: check.limit.limit,
    remaining: verdict.remaining,
    retryAfterMs: toWaitMs(verdict.retryAfterUs),
    resetAfterMs: toMs(verdict.resetAfterUs),
    quota: check.limit.quota,
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
export function toWaitMs(retryAfterUs: number): number | null {
  return retryAfterUs === NEVER ? null : toMs(retryAfterUs)
}

/** Returns the alternative that was charged, or else the one that will have room first. */
function decidingAlternative(answer: Answer): number {
  if (answer.charged >= 0 || answer.verdicts.length === 1) return Math.max(0, answer.charged)
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

/** Returns the binding verdict of the alternative that decided. */
export function bindingOf(answer: Answer): Verdict | undefined {
  const only = onlyVerdictOf(answer)
  if (only !== null) return only
  const verdicts = answer.verdicts[decidingAlternative(answer)] ?? []
  return verdicts[bindingIndex(verdicts)]
}

/** All checks must fit, so the longest wait binds; if all fit, the least remaining does. */
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

/** A watched limit may have had no room; it then counts nothing of the request. */
function admissionsOf(checks: readonly Check[], verdicts: readonly Verdict[]): readonly Admission[] {
  return checks.flatMap((check, index): Admission[] => {
    const { allowed, chargedAtUs } = verdicts[index] ?? NOT_LOOKED_AT
    if (check.cost === 0) return allowed ? [{ check, chargedAtUs: null }] : []
    return chargedAtUs === null ? [] : [{ check, chargedAtUs }]
  })
}

const NOT_LOOKED_AT = { allowed: false, chargedAtUs: null }

/** A place that a request in flight holds. */
export interface HeldPlace {
  readonly check: Check
  readonly takenAtUs: number
}

/** The places of a decision, to be given back. */
export interface HeldPlaces {
  /** Gives them back, once; never rejects. */
  release(): Promise<void>
  /** Stops renewing them. */
  letExpire(): void
}

/** A question with its answer, and what is derived from them on access. */
export class LazyVerdicts {
  /** Kept once read, because it must not move with the clock. */
  resetAt: number | null = null
  /** The places that were taken, if any. */
  held: HeldPlaces | null = null
  private told: readonly LimitVerdict[] | null = null

  constructor(
    readonly question: Question,
    readonly answer: Answer,
    readonly cost: number,
  ) {}

  /** The answer of every limit of the alternative that decided. */
  get verdicts(): readonly LimitVerdict[] {
    this.told ??= this.tell()
    return this.told
  }

  /** The one of them that decided. */
  get binding(): LimitVerdict | null {
    const { answer } = this
    return this.verdicts[bindingIndex(answer.verdicts[decidingAlternative(answer)] ?? [])] ?? null
  }

  get shadow(): readonly LimitVerdict[] {
    const checks = this.question.shadow
    return this.answer.shadow.map((verdict, index) => toLimitVerdict(checks[index] as Check, verdict))
  }

  /** The limits that had room for the request. Null for one that was denied or only looked at. */
  get admissions(): Admissions | null {
    const { question, answer } = this
    if (answer.charged < 0) return null
    const checks = question.alternatives[answer.charged] ?? []
    const verdicts = answer.verdicts[answer.charged] ?? []
    if (checks.some(({ cost }, index) => cost > 0 && verdicts[index]?.chargedAtUs === null)) return null
    return { binding: admissionsOf(checks, verdicts), shadow: admissionsOf(question.shadow, answer.shadow) }
  }

  /** The places taken, by binding and by shadow limits. */
  get places(): readonly HeldPlace[] {
    const { question, answer } = this
    const places = (checks: readonly Check[] = [], verdicts: readonly Verdict[] = []): HeldPlace[] =>
      checks.flatMap((check, index) => {
        const takenAtUs = verdicts[index]?.chargedAtUs ?? null
        return takenAtUs === null || !isOfPlaces(check) ? [] : [{ check, takenAtUs }]
      })
    const { charged } = answer
    const taken = charged < 0 ? [] : places(question.alternatives[charged], answer.verdicts[charged])
    return [...taken, ...places(question.shadow, answer.shadow)]
  }

  /** The states of the concurrency limits that had no place left. */
  get fullPlaces(): readonly string[] {
    const { question, answer } = this
    return answer.verdicts.flatMap((verdicts, alternative) => {
      const checks = question.alternatives[alternative] ?? []
      return checks.flatMap((check, index) =>
        isOfPlaces(check) && verdicts[index]?.allowed === false ? [stateOf(check)] : [],
      )
    })
  }

  private tell(): readonly LimitVerdict[] {
    const alternative = decidingAlternative(this.answer)
    const checks = this.question.alternatives[alternative] ?? []
    const verdicts = this.answer.verdicts[alternative] ?? []
    return verdicts.map((verdict, index) => toLimitVerdict(checks[index] as Check, verdict))
  }
}

/** Whether a place may have been taken for this question. */
export function asksForPlaces(question: Question): boolean {
  return someCheck(question, isOfPlaces)
}

function isOfPlaces({ limit }: Check): boolean {
  return limit.algorithm.kind === 'permits'
}

keepV8Shape(new LazyVerdicts({ alternatives: [], shadow: [] }, { charged: 0, verdicts: [], shadow: [] }, 1))
