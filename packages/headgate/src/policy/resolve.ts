/**
 * Request facts, the policy file, overrides and control become checks: which limits a request is asked against, whose
 * they are, and which of them bind. One pure function; nothing else decides what applies.
 *
 * A request that servers read in several ways is resolved in each by itself, and held to everything this leads to: every
 * limit, the highest cost, the strictest failure mode. So no spelling is better off than any other.
 */
import type { Question } from '../engine/question.js'
import type { ActiveConfig } from './active-config.js'
import { AppliedLevel } from './applied-level.js'
import type { HeaderStyle, PolicyOrTier } from './config.js'
import {
  askedBy,
  askedLevel,
  type Caller,
  callerLevel,
  findCaller,
  globalLevel,
  routeLevel,
} from './find-levels.js'
import { type FoundRoute, findRoutes } from './found-routes.js'
import { type Decider, levelsOf, questionOf } from './question-of.js'
import type { CanonicalFacts } from './request-facts.js'
import { commonStatuses, type Statuses } from './statuses.js'
import { unreadableLevel } from './unreadable-path.js'

/** Why nothing is asked: the switch is off, the multiplier is 0, or the file skips the request. */
export type Unasked = 'disabled' | 'paused' | 'skipped'

/** A request resolved: the question to ask, and how to read its answer. */
export interface Resolution {
  /** Null: the question below is to be asked. */
  readonly unasked: Unasked | null
  readonly question: Question
  /** Whether this process decides and the store's decision is only compared with it. */
  readonly compare: boolean
  readonly cost: number
  /** The caller's tier, where there is one. */
  readonly tier: string | null
  /** The levels that were found, the most specific first, with what becomes of each. */
  readonly levels: readonly AppliedLevel[]
  readonly headers: HeaderStyle | null
  /** Statuses of responses that give back what the request took; null where none does. */
  readonly refundIf: readonly Statuses[] | null
}

const NO_QUESTION: Question = { alternatives: [[]], shadow: [] }

/** Resolves a request by the rules. */
export function resolve(active: ActiveConfig, facts: CanonicalFacts, nowUs: number): Resolution {
  const caller = findCaller(active, facts, nowUs)
  if (facts.path === 'too-many') return resolveUnreadable(active, facts, caller)
  const asked = askedBy(facts, caller.tier)
  const routes = findRoutes(active, facts, asked)
  const ofCaller = new AppliedLevel(callerLevel(active, asked, caller, nowUs), facts.subjects)
  const everybodys = globalLevel(active)
  const common = everybodys === null ? [ofCaller] : [ofCaller, new AppliedLevel(everybodys, facts.subjects)]
  const readings = routes.map(found => {
    const { rule } = found
    const route =
      rule === null ? null : new AppliedLevel(routeLevel(active, rule, caller, nowUs), facts.subjects)
    return resolveRoute(active, found, route === null ? common : [route, ...common])
  })
  const isSkipped = readings.every(({ skipped }) => skipped)
  return conclude(active, readings, {
    tier: caller.tier,
    given: facts.cost,
    cost: facts.cost ?? Math.max(...readings.map(({ cost }) => cost)),
    isSkipped,
  })
}

/** Resolves a check that names a policy or a tier, past the rules. */
export function resolveAsk(
  active: ActiveConfig,
  asked: {
    readonly subject: string
    readonly charge: PolicyOrTier
    readonly scope: string
    readonly cost: number
    /** Further subjects that are charged, all or none. */
    readonly also: readonly { readonly subject: string; readonly charge: PolicyOrTier }[]
  },
  nowUs: number,
): Resolution {
  const { cost, subject, scope, also } = asked
  const applied = [{ subject, charge: asked.charge }, ...also].map(
    one => new AppliedLevel(askedLevel(active, { ...one, scope }, nowUs), [one.subject]),
  )
  // Like the readings of one request: each of them has to be satisfied.
  const readings = applied.map(level => ({ ...assignParts(active, [level]), cost, skipped: false }))
  const tier = applied[0]?.level.configured.policy.tier ?? null
  return conclude(active, readings, { tier, given: cost, cost, isSkipped: false })
}

/** More readings than anybody may ask for: what they lead to cannot be told, so the request is turned away. */
function resolveUnreadable(active: ActiveConfig, facts: CanonicalFacts, { tier }: Caller): Resolution {
  const level = new AppliedLevel(unreadableLevel(active), facts.subjects)
  level.part = 'decides'
  const cost = facts.cost ?? 1
  const reading = { levels: [level], deciding: [level], cost, skipped: false }
  return conclude(active, [reading], {
    tier,
    given: Math.max(1, cost),
    cost: Math.max(1, cost),
    isSkipped: false,
  })
}

/** One reading of a request, resolved. */
interface ResolvedReading extends Decider {
  readonly cost: number
  readonly skipped: boolean
}

function resolveRoute(
  active: ActiveConfig,
  { rule, isSkippable, listedCost, readings }: FoundRoute,
  levels: readonly AppliedLevel[],
): ResolvedReading {
  const namedByPath = rule !== null && rule.match.path !== null
  const [route] = levels
  // A rule that names a path means it, whatever a file of that name would look like; one on trial only watches it.
  const onTrial = isSkippable && namedByPath && route?.isShadow === true
  const skipped = isSkippable && !namedByPath
  const spoken = onTrial ? levels.slice(0, 1) : levels
  const decider = assignParts(active, skipped ? [] : spoken)
  for (const level of spoken) level.readings.push(...readings)
  return { ...decider, levels: spoken, skipped, cost: costOf(spoken, decider.deciding) ?? listedCost }
}

/** Shadow levels step aside and the next one decides, so that a rule on trial does not switch off what was in force. */
function assignParts({ config }: ActiveConfig, levels: readonly AppliedLevel[]): Decider {
  const binding = levels.filter(level => !level.isShadow)
  const deciding = config.levels === 'most-specific' ? binding.slice(0, 1) : binding
  for (const level of levels) if (level.isShadow) level.part = 'shadow'
  for (const level of deciding) level.part = 'decides'
  return { levels, deciding }
}

/** The cost by the most specific rule that is asked; where all are on trial, by any of them. */
function costOf(levels: readonly AppliedLevel[], deciding: readonly AppliedLevel[]): number | null {
  const speaking = deciding.length === 0 ? levels : deciding
  return speaking.find(({ level }) => level.cost !== null)?.level.cost ?? null
}

interface Found {
  readonly tier: string | null
  /** The cost the request itself came with. */
  readonly given: number | null
  readonly cost: number
  readonly isSkipped: boolean
}

function conclude(
  active: ActiveConfig,
  readings: readonly ResolvedReading[],
  { tier, given, cost, isSkipped }: Found,
): Resolution {
  const levels = levelsOf(readings)
  const deciding = levels.filter(({ part }) => part === 'decides')
  const speaks = (deciding[0] ?? levels[0])?.level
  const asked =
    isSkipped || !active.control.enabled ? NO_QUESTION : questionOf(active, readings, { given, cost })
  return {
    unasked: unaskedBecause(active, isSkipped, asked),
    tier,
    cost,
    question: asked,
    // Limits of the store are never decided here because another reading of the request would be.
    compare: deciding.length > 0 && deciding.every(({ level }) => level.mode === 'compare'),
    levels,
    headers: speaks?.headers ?? null,
    refundIf: refundedBy(readings),
  }
}

/** By the most specific rule that decides; where servers may read the request differently, what all of these say. */
function refundedBy(readings: readonly Decider[]): readonly Statuses[] | null {
  let common: readonly Statuses[] | null = null
  for (const { levels, deciding } of readings) {
    const statuses = (deciding[0] ?? levels[0])?.level.refundIf ?? null
    if (statuses === null) return null
    common = common === null ? statuses : commonStatuses(common, statuses)
  }
  return common
}

/** While paused only bans are asked, and for most requests there is none. */
function unaskedBecause(
  { control }: ActiveConfig,
  isSkipped: boolean,
  { alternatives }: Question,
): Unasked | null {
  if (!control.enabled) return 'disabled'
  if (control.multiplier === 0 && alternatives.some(checks => checks.length === 0)) return 'paused'
  return isSkipped ? 'skipped' : null
}
