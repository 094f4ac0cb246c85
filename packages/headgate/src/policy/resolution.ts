/** What resolving a request comes to: which limits it is asked against, whose they are, and which of them bind. */
import { PendingCheck } from '../check/pending-check.js'
import { NO_LABELS, type PlanLabels } from '../check/plan.js'
import type { Plans, Question } from '../check/plans.js'
import type { ActivePolicies } from './active-policies.js'
import { AppliedLevel } from './applied-level.js'
import { askedLevel } from './asked-level.js'
import { checksOfRequest, type Decider, levelsOf } from './checks-of.js'
import type { HeaderStyle, PolicyOrTier } from './config.js'
import { targetKey } from './override.js'
import { type MeterConfig, metersOf } from './token-meters.js'

/** Why no limit is asked: limiting is switched off, the multiplier is 0, or the file skips the request. */
export type Bypass = 'disabled' | 'paused' | 'skipped'

/** A resolved request: the checks to ask, and how to read the answer. */
export interface Resolution {
  /** Null: `question` must be asked. */
  readonly bypass: Bypass | null
  readonly question: Question
  /** Whether this process decides and the store's decision is only compared with it. */
  readonly compare: boolean
  readonly cost: number
  /** The caller's tier, if it has one. */
  readonly tier: string | null
  /** The ways to read it, each with the levels it leads to. */
  readonly readings: readonly ResolvedReading[]
  /** The levels found, the most specific first, each with the part it plays. */
  readonly levels: readonly AppliedLevel[]
  readonly headers: HeaderStyle | null
  /** The tokens of a model that it reserves. */
  readonly tokens: readonly MeterConfig[]
}

const NO_QUESTION: Question = { alternatives: [[]], shadow: [] }

/** Resolves a check that names a policy or a tier, bypassing the rules. */
export function resolveAsk(
  active: ActivePolicies,
  asked: {
    readonly subject: string
    readonly charge: PolicyOrTier
    readonly scope: string
    readonly cost: number
    /** Further subjects that are charged, all or none. */
    readonly also: readonly {
      readonly subject: string
      readonly charge: PolicyOrTier
      readonly times?: number | undefined
      /** Default: the request's. */
      readonly cost?: number | undefined
    }[]
  },
  nowUs: number,
): Resolution {
  const { cost, subject, scope, also } = asked
  const applied = [{ subject, charge: asked.charge, cost: undefined }, ...also].map(one => {
    const level = new AppliedLevel(askedLevel(active, { ...one, scope }, nowUs), one.subject)
    level.units = one.cost ?? null
    return level
  })
  // Treated like several readings of one request: each must be satisfied.
  const readings = applied.map(level => ({ ...assignParts(active, [level]), cost, skipped: false }))
  const tier = applied[0]?.level.configured.policy.tier ?? null
  return conclude(active, readings, { tier, given: cost, cost, isSkipped: false })
}

/** One resolved reading of a request. */
export interface ResolvedReading extends Decider {
  readonly cost: number
  readonly skipped: boolean
}

/**
 * Shadow levels step aside and the next one decides, so that a rule on trial does not switch off the rule in force.
 */
export function assignParts({ config }: ActivePolicies, levels: readonly AppliedLevel[]): Decider {
  const binding = levels.filter(level => !level.isShadow)
  const deciding = config.levels === 'most-specific' ? binding.slice(0, 1) : binding
  for (const level of levels) if (level.isShadow) level.part = 'shadow'
  for (const level of deciding) level.part = 'decides'
  return { levels, deciding }
}

export interface Found {
  readonly tier: string | null
  /** The cost the request itself came with. */
  readonly given: number | null
  readonly cost: number
  readonly isSkipped: boolean
}

export function conclude(
  active: ActivePolicies,
  readings: readonly ResolvedReading[],
  { tier, given, cost, isSkipped }: Found,
): Resolution {
  const levels = levelsOf(readings)
  const deciding = levels.filter(({ part }) => part === 'decides')
  const speaks = (deciding[0] ?? levels[0])?.level
  const asked =
    isSkipped || !active.control.enabled ? NO_QUESTION : checksOfRequest(active, readings, { given, cost })
  return {
    bypass: bypassOf(active, isSkipped, asked),
    tier,
    cost,
    question: asked,
    // One reading in compare mode must not make the limits of another reading be decided locally.
    compare: deciding.length > 0 && deciding.every(({ level }) => level.mode === 'compare'),
    readings,
    levels,
    headers: speaks?.headers ?? null,
    tokens: metersOf(levels),
  }
}

/** While paused only bans are asked, and most requests meet none. */
function bypassOf(
  { control }: ActivePolicies,
  isSkipped: boolean,
  { alternatives }: Question,
): Bypass | null {
  if (!control.enabled) return 'disabled'
  if (control.multiplier === 0 && alternatives.some(checks => checks.length === 0)) return 'paused'
  return isSkipped ? 'skipped' : null
}

/** The denial of a request one of whose subjects an operator has banned; null if none is. The store is not asked. */
export function bannedCheck(
  asked: {
    readonly active: ActivePolicies
    readonly plans: Plans
    readonly subjects: readonly string[]
    readonly cost: number
    readonly isPeek: boolean
  },
  labelsOf: () => PlanLabels,
  nowUs: number,
): PendingCheck | null {
  const { active, plans, subjects, cost, isPeek } = asked
  const { overrides, control } = active
  if (overrides.size === 0 || !control.enabled) return null
  for (const subject of subjects) {
    const waitUs = overrides.leftUs(targetKey({ subject, ban: true }), nowUs)
    if (waitUs === 0) continue
    const labels = { ...labelsOf(), bypass: 'banned' as const }
    const { plan } = plans.pending(NO_QUESTION, { labels, cost })
    const denial = new PendingCheck(plan, subject, cost)
    const check = isPeek ? denial.asPeek() : denial
    check.waitUs = waitUs
    return check
  }
  return null
}

/** Describes the rules that led to a decision. */
export function labelsOf(resolution: Resolution): PlanLabels {
  const { levels, tier, bypass, headers, tokens, question } = resolution
  const spoke = levels.find(({ part }) => part === 'decides') ?? levels[0]
  const isOnlyShadow =
    bypass === null && question.shadow.length > 0 && levels.every(({ part }) => part !== 'decides')
  return {
    ...NO_LABELS,
    policy: spoke?.level.configured.policy.name ?? '',
    tier,
    rule: spoke?.level.rule ?? null,
    bypass: isOnlyShadow ? 'shadow' : bypass,
    headers,
    tokens,
  }
}
