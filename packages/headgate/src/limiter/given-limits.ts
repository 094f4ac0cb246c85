/**
 * Limits that are not in the policy file: protocols such as Envoy's bring their own. They are decided like all
 * others, under the same switches, by the same store.
 */
import type { Limit } from '../algorithms/algorithm.js'
import type { Check } from '../check/check.js'
import { parseCost, parseScope } from '../check/check-options.js'
import type { PendingCheck } from '../check/pending-check.js'
import { NO_LABELS, type PlanLabels } from '../check/plan.js'
import { type Decision, type LimitVerdict, verdictOf } from '../decision/decision.js'
import { unexpected } from '../errors/headgate-error.js'
import { scaleLimit } from '../policy/change-numbers.js'
import type { Control } from '../policy/control.js'
import type { SubjectInput } from '../subject/subject.js'
import { INSIDE, type Limiter, type LimiterInside } from './limiter.js'

/** A limit and the subject it is for. */
export interface GivenLimit {
  readonly subject: SubjectInput
  /** Names the state together with the limit's id; up to 32 letters, digits, - or _. */
  readonly policy: string
  readonly limit: Limit
  readonly scope?: string
  /** The cost. Default 1. */
  readonly cost?: number
}

export interface GivenLimits {
  /** The first alternative whose limits all have room is charged, as a whole. */
  readonly alternatives: readonly (readonly GivenLimit[])[]
  /** Charged if they have room, whatever becomes of the request; they never bind. */
  readonly shadow?: readonly GivenLimit[]
}

export interface GivenLimitsAnswer {
  /** The decision. */
  readonly decision: Decision
  /** The index of the charged alternative; −1 if none was. */
  readonly charged: number
  /** The verdicts of the alternatives looked at, in order. Null for a limit that the switches let pass. */
  readonly verdicts: readonly (readonly (LimitVerdict | null)[])[]
  readonly shadow: readonly (LimitVerdict | null)[]
}

const POLICY = /^[A-Za-z0-9_-]{1,32}$/
/** Plans are made of limits by their object, so each is scaled once per multiplier. */
const scaledLimits = new WeakMap<Limit, { readonly factor: number; readonly limit: Limit }>()

/** Decides limits that the limiter does not have, under its switches. A denial is an answer, never an error. */
export async function checkLimits(
  limiter: Limiter<string, string>,
  given: GivenLimits,
): Promise<GivenLimitsAnswer> {
  const inside = limiter[INSIDE]()
  const asked = new GivenCheck(given, inside)
  await inside.decide(asked.check)
  return asked.answer()
}

/** Refunds units of such limits, the oldest first. Returns how many came back of each: 0 while the store is away. */
export async function refundLimits(
  limiter: Limiter<string, string>,
  limits: readonly GivenLimit[],
): Promise<readonly number[]> {
  const inside = limiter[INSIDE]()
  const refunds = limits.map(one => {
    const check = checkOf(one, inside)
    return { check, units: check.cost, chargedAtUs: null }
  })
  return inside.store.refund(refunds)
}

/** A check of given limits, and how to read its answer. */
class GivenCheck {
  readonly check: PendingCheck
  readonly #alternatives: readonly (readonly Check[])[]
  readonly #shadow: readonly Check[]
  readonly #isAsked: (check: Check) => boolean

  constructor(given: GivenLimits, inside: LimiterInside) {
    const { control, config } = inside.active
    this.#isAsked = isAsked(control)
    this.#alternatives = given.alternatives.map(limits => limits.map(one => checkOf(one, inside)))
    this.#shadow = (given.shadow ?? []).map(one => checkOf(one, inside))
    const list = {
      alternatives: this.#alternatives.map(checks => checks.filter(this.#isAsked)),
      shadow: this.#shadow.filter(this.#isAsked),
      onStoreFailure: config.onStoreFailure,
    }
    const cost = Math.max(0, ...this.#alternatives.flat().map(check => check.cost))
    this.check = inside.plans.pending(list, { labels: labelsOf(given, control), cost })
  }

  /** The answer, once the check is decided. */
  answer(): GivenLimitsAnswer {
    const { check } = this
    const { plan, charged } = check
    const isUnlooked = check.isUnlooked
    const looked = isUnlooked || charged < 0 ? plan.ends.length : charged + 1
    let at = 0
    const verdictsOf = (checks: readonly Check[]): (LimitVerdict | null)[] =>
      checks.map(one => {
        if (!this.#isAsked(one)) return null
        const index = at++
        return isUnlooked ? null : verdictOf(check, index)
      })
    const verdicts = this.#alternatives.slice(0, plan.asksNothing ? 1 : looked).map(verdictsOf)
    at = plan.shadowFrom
    return { decision: check.decision, charged, verdicts, shadow: verdictsOf(this.#shadow) }
  }
}

function checkOf(given: GivenLimit, { nameSubject, active: { control } }: LimiterInside): Check {
  const { subject, policy, limit, scope, cost } = given
  if (!POLICY.test(policy)) {
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', 'policy', 'up to 32 letters, digits, - or _', policy)
  }
  return {
    subject: nameSubject(subject),
    scope: parseScope(scope),
    name: `${policy}.${limit.id}`,
    limit: scaled(limit, control.multiplier),
    cost: cost === undefined ? 1 : parseCost(cost),
  }
}

/** While paused only bans are asked. */
function isAsked({ enabled, multiplier }: Control): (check: Check) => boolean {
  return ({ limit }) => enabled && (multiplier > 0 || limit.limit === 0)
}

function scaled(limit: Limit, factor: number): Limit {
  if (factor === 1 || factor === 0) return limit
  const known = scaledLimits.get(limit)
  if (known?.factor === factor) return known.limit
  const made = scaleLimit(limit, factor)
  scaledLimits.set(limit, { factor, limit: made })
  return made
}

function labelsOf({ alternatives, shadow = [] }: GivenLimits, control: Control): PlanLabels {
  const binding = alternatives.flat()
  const bypass = !control.enabled ? 'disabled' : control.multiplier === 0 ? 'paused' : null
  const onlyShadow = binding.length === 0 && shadow.length > 0 ? 'shadow' : null
  return {
    ...NO_LABELS,
    policy: (binding[0] ?? shadow[0])?.policy ?? '',
    bypass: bypass ?? onlyShadow,
  }
}
