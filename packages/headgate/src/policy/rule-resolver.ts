/** Resolves a request by the rules of a policy file. Another file or other switches need another one. */
import { BoundedMap } from '../check/bounded-map.js'
import type { Check } from '../check/check.js'
import { PendingCheck, type RareParts } from '../check/pending-check.js'
import type { Plan, PlanLabels } from '../check/plan.js'
import type { Plans } from '../check/plans.js'
import { ANONYMOUS, type SubjectInput, type SubjectNamer, typeOf } from '../subject/subject.js'
import type { Clock } from '../time/clock.js'
import type { ActiveConfig } from './active-config.js'
import { canonicalFacts } from './canonical-facts.js'
import type { Decider } from './checks-of.js'
import type { Ipv6Budgets } from './ipv6-budgets.js'
import type { Level } from './level.js'
import { commonRefunds } from './refund-rule.js'
import type { RequestFacts } from './request-facts.js'
import { bannedCheck, labelsOf, type Resolution } from './resolution.js'
import { resolve } from './resolve.js'
import { resolveTokens } from './resolve-tokens.js'
import { commonStatuses } from './statuses.js'
import type { Estimates } from './token-meters.js'
import { commonWait } from './wait.js'

/** How many paths are cached. Finding the rules again takes several times as long as the decision. */
const MAX_PATHS = 4_096
/** Longer paths are resolved each time: caching them would let callers fill the memory. */
const MAX_PATH_LENGTH = 256
/** Methods, tiers and kinds of caller that are remembered for a path. */
const MAX_RECIPES = 8

export interface RuleResolverOptions {
  readonly active: ActiveConfig
  readonly nameSubject: SubjectNamer
  readonly budgets: Ipv6Budgets
  readonly plans: Plans
  readonly clock: Clock
  warn(message: string, about?: string): void
}

/** What a path was resolved to, for every ordinary caller of one type. */
class Recipe {
  constructor(
    private readonly method: string | undefined,
    private readonly tier: string | undefined,
    private readonly typeStart: string,
    private readonly plan: Plan,
    private readonly cost: number,
    /** Whoever pays instead of the caller, where all share a budget. */
    private readonly payer: string | null,
    private readonly more: RareParts | null,
  ) {}

  isFor({ method, tier }: RequestFacts, subject: string): boolean {
    return method === this.method && tier === this.tier && subject.startsWith(this.typeStart)
  }

  pending(subject: string): PendingCheck {
    return new PendingCheck(this.plan, this.payer ?? subject, this.cost, this.more)
  }
}

export class RuleResolver {
  private readonly recipes = new BoundedMap<Recipe[]>(MAX_PATHS)

  constructor(private readonly options: RuleResolverOptions) {}

  resolve(facts: RequestFacts, isPeek: boolean): PendingCheck {
    if (isPeek || !isPlain(facts) || this.options.active.overrides.size > 0)
      return this.pending(facts, isPeek)
    const subject = this.options.nameSubject(facts.subject)
    if (this.isSpecial(subject)) return this.pending(facts, false)
    const query = facts.path.indexOf('?')
    const path = query < 0 ? facts.path : facts.path.slice(0, query)
    const known = this.recipes.get(path)
    if (known !== undefined) {
      for (const recipe of known) if (recipe.isFor(facts, subject)) return recipe.pending(subject)
    }
    return this.resolveAndRemember(facts, path, subject, known)
  }

  private resolveAndRemember(
    facts: PlainFacts,
    path: string,
    subject: string,
    known: readonly Recipe[] | undefined,
  ): PendingCheck {
    const resolution = this.resolution(facts)
    const check = this.pendingOf(resolution, false)
    const { plan, cost, more } = check
    const isShared =
      path.length <= MAX_PATH_LENGTH &&
      (more === null || more.others.every(other => other.subject !== subject)) &&
      resolution.levels.every(({ level }) => level.enforcePercent === 100 && typeof level.per === 'string')
    if (isShared) {
      const payer = check.subject === subject || plan.limits.length === 0 ? null : check.subject
      const recipe = new Recipe(facts.method, facts.tier, `${typeOf(subject)}:`, plan, cost, payer, more)
      this.recipes.set(path, [...(known ?? []).slice(1 - MAX_RECIPES), recipe])
    }
    return check
  }

  /** What a request reserves of the tokens of a model. */
  resolveTokens(facts: RequestFacts, estimates: Estimates): PendingCheck {
    const { active } = this.options
    return this.unlessBanned(facts, resolveTokens(active, this.resolution(facts), estimates), false)
  }

  /** Whether the file mentions the caller, or it has networks around it. */
  private isSpecial(subject: string): boolean {
    const { active, budgets } = this.options
    return budgets.isWidened(subject) || (active.subjects.size > 0 && active.subjects.has(subject))
  }

  private pending(facts: RequestFacts, isPeek: boolean): PendingCheck {
    return this.unlessBanned(facts, this.resolution(facts), isPeek)
  }

  /** The check of a request, or its denial if an operator has banned one of its subjects. */
  private unlessBanned(facts: RequestFacts, resolution: Resolution, isPeek: boolean): PendingCheck {
    const { active, plans, nameSubject, clock } = this.options
    const { cost } = resolution
    const subjects =
      active.overrides.size === 0 ? [] : [facts.subject].flat().map(one => nameSubject(one as SubjectInput))
    return (
      bannedCheck({ active, plans, subjects, cost, isPeek }, () => ruleLabels(resolution), clock.nowUs()) ??
      this.pendingOf(resolution, isPeek)
    )
  }

  private pendingOf(resolution: Resolution, isPeek: boolean): PendingCheck {
    const { budgets, plans } = this.options
    const { cost, compare: isCompared } = resolution
    return plans.pending(budgets.widen(resolution.question), {
      labels: ruleLabels(resolution),
      cost,
      isPeek,
      isCompared,
    })
  }

  /** Which rules a request matches, and what that comes to. */
  resolution(facts: RequestFacts): Resolution {
    const { active, nameSubject, clock, warn } = this.options
    return resolve(active, canonicalFacts(facts, { nameSubject, tiers: active.tiers, warn }), clock.nowUs())
  }

  /** Whether a request that could not be asked about must be denied. One that no limit binds passes, as it would have. */
  deniesFault({ method, path }: Partial<RequestFacts>): boolean {
    const { config, defaultFailure } = this.options.active
    const byDefault = config.onStoreFailure ?? defaultFailure
    try {
      const { question } = this.resolution({
        subject: ANONYMOUS,
        ...(method && { method }),
        ...(path && { path }),
      })
      const isAsked = question.alternatives.every((checks: readonly Check[]) => checks.length > 0)
      return isAsked && (question.onStoreFailure ?? byDefault) === 'closed'
    } catch {
      // The facts themselves may be what failed.
      return byDefault === 'closed' && config.mode !== 'shadow'
    }
  }
}

function ruleLabels(resolution: Resolution): PlanLabels {
  return { ...labelsOf(resolution), ...grantsOf(resolution.readings) }
}

/** What the rules of a request grant beside its limits. */
function grantsOf(readings: readonly Decider[]): Pick<PlanLabels, 'refundIf' | 'resetIf' | 'wait'> {
  return {
    refundIf: commonOf(readings, level => level.refundIf, commonRefunds),
    resetIf: commonOf(readings, level => level.resetIf, commonStatuses),
    wait: commonOf(readings, level => level.wait, commonWait),
  }
}

/** Returns what the most specific deciding rule grants; with several readings, only what all of them do. */
function commonOf<Grant>(
  readings: readonly Decider[],
  grantOf: (level: Level) => Grant | null,
  commonTo: (one: Grant, other: Grant) => Grant,
): Grant | null {
  let common: Grant | null = null
  for (const { levels, deciding } of readings) {
    const speaks = (deciding[0] ?? levels[0])?.level
    const grant = speaks === undefined ? null : grantOf(speaks)
    if (grant === null) return null
    common = common === null ? grant : commonTo(common, grant)
  }
  return common
}

type PlainFacts = RequestFacts & { readonly subject: string; readonly path: string }

/** Whether there is one caller by its text, no cost of its own, and no other method claimed. */
function isPlain(facts: RequestFacts): facts is PlainFacts {
  if (typeof facts !== 'object' || facts === null || typeof facts.subject !== 'string') return false
  const { claimedMethods, cost, scope, method, path, perAddress } = facts
  if (perAddress !== undefined) return false
  if (cost !== undefined || scope !== undefined || typeof path !== 'string') return false
  if (claimedMethods !== undefined && claimedMethods.length !== 0) return false
  return method === undefined || typeof method === 'string'
}
