/** What resolving a request comes to: which limits it is asked against, whose they are, and which of them bind. */
import type { PlanLabels } from '../check/plan.js'
import type { CheckList } from '../check/plans.js'
import type { ActivePolicies } from './active-policies.js'
import { AppliedLevel } from './applied-level.js'
import { askedLevel } from './asked-level.js'
import { checksOfRequest, type Decider, levelsOf } from './checks-of.js'
import type { HeaderStyle, PolicyOrTier } from './config.js'
import { commonRefunds, type RefundRule } from './refund-rule.js'

/** Why no limit is asked: limiting is switched off, the multiplier is 0, or the file skips the request. */
export type Bypass = 'disabled' | 'paused' | 'skipped'

/** A resolved request: the checks to ask, and how to read the answer. */
export interface Resolution {
  /** Null: `question` must be asked. */
  readonly bypass: Bypass | null
  readonly question: CheckList
  /** Whether this process decides and the store's decision is only compared with it. */
  readonly compare: boolean
  readonly cost: number
  /** The caller's tier, if it has one. */
  readonly tier: string | null
  /** The levels found, the most specific first, each with the part it plays. */
  readonly levels: readonly AppliedLevel[]
  readonly headers: HeaderStyle | null
  /** The responses that give back the charge; null if none does. */
  readonly refundIf: RefundRule | null
}

const NO_QUESTION: CheckList = { alternatives: [[]], shadow: [] }

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
    }[]
  },
  nowUs: number,
): Resolution {
  const { cost, subject, scope, also } = asked
  const applied = [{ subject, charge: asked.charge }, ...also].map(
    one => new AppliedLevel(askedLevel(active, { ...one, scope }, nowUs), [one.subject]),
  )
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
    levels,
    headers: speaks?.headers ?? null,
    refundIf: refundedBy(readings),
  }
}

/** Returns what the most specific deciding rule gives back; with several readings, only what all of them do. */
function refundedBy(readings: readonly Decider[]): RefundRule | null {
  let common: RefundRule | null = null
  for (const { levels, deciding } of readings) {
    const rule = (deciding[0] ?? levels[0])?.level.refundIf ?? null
    if (rule === null) return null
    common = common === null ? rule : commonRefunds(common, rule)
  }
  return common
}

/** While paused only bans are asked, and most requests meet none. */
function bypassOf(
  { control }: ActivePolicies,
  isSkipped: boolean,
  { alternatives }: CheckList,
): Bypass | null {
  if (!control.enabled) return 'disabled'
  if (control.multiplier === 0 && alternatives.some(checks => checks.length === 0)) return 'paused'
  return isSkipped ? 'skipped' : null
}

/** Describes the rules that led to a decision. */
export function labelsOf({ levels, tier, bypass, headers, refundIf, question }: Resolution): PlanLabels {
  const spoke = levels.find(({ part }) => part === 'decides') ?? levels[0]
  const isOnlyShadow =
    bypass === null && question.shadow.length > 0 && levels.every(({ part }) => part !== 'decides')
  return {
    policy: spoke?.level.configured.policy.name ?? '',
    tier,
    rule: spoke?.level.rule ?? null,
    bypass: isOnlyShadow ? 'shadow' : bypass,
    headers,
    refundIf,
  }
}
