import type { Check } from '../check/check.js'
import {
  type CheckOptions,
  parseAlso,
  parseCost,
  parsePolicyOrTier,
  parseScope,
  parseTimes,
} from '../check/check-options.js'
import { PendingCheck, type RareParts } from '../check/pending-check.js'
import type { Plan } from '../check/plan.js'
import type { Plans } from '../check/plans.js'
import type { ActivePolicies } from '../policy/active-policies.js'
import { statesOf } from '../policy/checks-of.js'
import { type PolicyOrTier, parseFailureMode } from '../policy/config.js'
import type { Ipv6Budgets } from '../policy/ipv6-budgets.js'
import { type OverrideTarget, targetKey } from '../policy/override.js'
import { bannedCheck, labelsOf, type Resolution, resolveAsk } from '../policy/resolution.js'
import type { SubjectInput, SubjectNamer } from '../subject/subject.js'
import type { Clock } from '../time/clock.js'

export interface NamedPoliciesOptions {
  readonly active: ActivePolicies
  readonly nameSubject: SubjectNamer
  readonly budgets: Ipv6Budgets
  readonly plans: Plans
  readonly clock: Clock
}

type AnyCheckOptions = CheckOptions<string, string>

/** Resolves the name of a policy or tier: `limiter.check(subject, { policy })`. Never changed, only replaced. */
export class NamedPolicies {
  private readonly byPolicy = new Map<string, Plan | null>()
  private readonly byTier = new Map<string, Plan | null>()

  constructor(private readonly options: NamedPoliciesOptions) {}

  get policyNames(): string[] {
    return [...this.options.active.policies.keys()]
  }

  get tierNames(): string[] {
    return [...this.options.active.tiers.keys()]
  }

  resolve(subject: SubjectInput, options: AnyCheckOptions, isPeek: boolean): PendingCheck {
    // First, so that a forgotten subject is not taken for a forgotten policy.
    const name = this.options.nameSubject(subject)
    const plan = this.planOf(options)
    if (plan === null || options.also !== undefined || this.isSpecial(name, options.policy)) {
      return this.resolveFully(name, options, isPeek)
    }
    const cost = options.cost === undefined ? 1 : parseCost(options.cost)
    return new PendingCheck(plan, name, cost, moreOf(options, isPeek))
  }

  /** Whether a policy only watches, so that nothing that fails may deny. */
  bindsNobody(policy: string): boolean {
    return this.options.active.policies.has(policy) && this.planOf({ policy })?.bindsNobody === true
  }

  /** The plan that is the same for all callers who are not special; null if there is none. */
  private planOf(options: AnyCheckOptions): Plan | null {
    const charge = this.policyOrTier(options)
    const [plans, name] =
      charge.policy === undefined ? [this.byTier, charge.tier] : [this.byPolicy, charge.policy]
    let plan = plans.get(name)
    if (plan === undefined) {
      plan = this.commonPlan(charge)
      plans.set(name, plan)
    }
    return plan
  }

  private commonPlan(charge: PolicyOrTier): Plan | null {
    // Overrides come and go.
    const active = { ...this.options.active, overrides: NO_OVERRIDES }
    const resolution = resolveAsk(active, { subject: ANYBODY, charge, scope: 'global', cost: 1, also: [] }, 0)
    // Which callers a percentage enforces depends on who they are.
    if (resolution.levels.some(({ level }) => level.enforcePercent < 100)) return null
    const check = this.pending(resolution, 1, false)
    return check.more === null ? check.plan : null
  }

  /** Whether a caller's limits are not those of everybody: an operator has replaced them, or networks around it pay, too. */
  private isSpecial(subject: string, policy: string | undefined): boolean {
    const { active, budgets, clock } = this.options
    if (budgets.isWidened(subject)) return true
    const { overrides } = active
    if (overrides.size === 0) return false
    const nowUs = clock.nowUs()
    const isSet = (target: OverrideTarget): boolean => overrides.find(targetKey(target), nowUs) !== null
    if (isSet({ subject }) || isSet({ subject, ban: true })) return true
    return policy !== undefined && (isSet({ policy }) || isSet({ subject, policy }))
  }

  private resolveFully(subject: string, options: AnyCheckOptions, isPeek: boolean): PendingCheck {
    const cost = options.cost === undefined ? 1 : parseCost(options.cost)
    const charge = this.policyOrTier(options)
    const resolution = this.resolution(subject, charge, parseScope(options.scope), cost, options)
    const { active, clock, plans } = this.options
    const subjects = [subject, ...parseAlso(options).map(other => this.options.nameSubject(other.subject))]
    const banned = bannedCheck(
      { active, plans, subjects, cost, isPeek },
      () => labelsOf(resolution),
      clock.nowUs(),
    )
    if (banned !== null) return banned
    const check = this.pending(resolution, cost, isPeek)
    if (options.onStoreFailure === undefined) return check
    const { scope, others, units } = check.more ?? { scope: 'global', others: [], units: null }
    const onStoreFailure = parseFailureMode(options.onStoreFailure)
    return new PendingCheck(check.plan, check.subject, cost, { scope, isPeek, others, units, onStoreFailure })
  }

  private resolution(
    subject: string,
    charge: PolicyOrTier,
    scope: string,
    cost: number,
    options?: AnyCheckOptions,
  ): Resolution {
    const { active, nameSubject, clock } = this.options
    const also = (options === undefined ? [] : parseAlso(options)).map(other => ({
      subject: nameSubject(other.subject),
      charge: this.policyOrTier(other),
      times: other.times === undefined ? undefined : parseTimes(other.times),
      cost: other.cost === undefined ? undefined : parseCost(other.cost, 'also.cost'),
    }))
    return resolveAsk(active, { subject, charge, scope, cost, also }, clock.nowUs())
  }

  private pending(resolution: Resolution, cost: number, isPeek: boolean): PendingCheck {
    const { budgets, plans } = this.options
    const list = budgets.widen(resolution.question)
    const labels = { ...labelsOf(resolution), rule: null }
    return plans.pending(list, { labels, cost, isPeek, isCompared: resolution.compare })
  }

  /** Throws for a name that does not exist. */
  policyOrTier(named: PolicyOrTier): PolicyOrTier {
    return parsePolicyOrTier(named, this.options.active)
  }

  /** Every state that a policy or tier keeps about a subject. */
  statesOf(subject: string, options: AnyCheckOptions): Check[] {
    const { scope } = options
    const charge = this.policyOrTier(options)
    return this.resolution(subject, charge, parseScope(scope), 0, options).levels.flatMap(statesOf)
  }
}

const NO_OVERRIDES = { size: 0, find: () => null, leftUs: () => 0 }

/** Stands for a caller about whom nothing is known. */
export const ANYBODY = 'anybody:unknown'

function moreOf({ scope, onStoreFailure }: AnyCheckOptions, isPeek: boolean): RareParts | null {
  if (scope === undefined && onStoreFailure === undefined && !isPeek) return null
  return {
    scope: parseScope(scope),
    isPeek,
    others: [],
    units: null,
    onStoreFailure: onStoreFailure === undefined ? null : parseFailureMode(onStoreFailure),
  }
}
