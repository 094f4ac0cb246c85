/**
 * Turns request facts, the policy file, overrides and control into checks: which limits a request is asked against,
 * whose they are, and which of them bind. One pure function; nothing else decides what applies.
 *
 * A request that servers may read in several ways is resolved in each of them and held to everything this leads to:
 * every limit, the highest cost, the strictest failure mode. So no spelling is better off than another.
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
  unknownOf,
} from './find-levels.js'
import { type FoundRoute, findRoutes } from './found-routes.js'
import type { Level } from './level.js'
import { type Decider, levelsOf, questionOf } from './question-of.js'
import { commonRefunds, type RefundRule } from './refund-rule.js'
import type { CanonicalFacts } from './request-facts.js'
import { unreadableLevel } from './unreadable-path.js'

/** Why no limit is asked: limiting is switched off, the multiplier is 0, or the file skips the request. */
export type Unasked = 'disabled' | 'paused' | 'skipped'

/** A resolved request: the question to ask, and how to read its answer. */
export interface Resolution {
  /** Null: `question` must be asked. */
  readonly unasked: Unasked | null
  readonly question: Question
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

const NO_QUESTION: Question = { alternatives: [[]], shadow: [] }

/** Resolves a request by the rules. */
export function resolve(active: ActiveConfig, facts: CanonicalFacts, nowUs: number): Resolution {
  const caller = findCaller(active, facts, nowUs)
  if (facts.path === 'too-many') return resolveUnreadable(active, facts, caller)
  const asked = askedBy(facts, caller.tier)
  const routes = findRoutes(active, facts, asked)
  const minted = unknownOf(active, facts.minted ?? null, nowUs)
  const apply = (level: Level) => new AppliedLevel(level, facts.subjects, minted)
  const ofCaller = apply(callerLevel(active, asked, caller, nowUs))
  const everybodys = globalLevel(active)
  const common = everybodys === null ? [ofCaller] : [ofCaller, apply(everybodys)]
  const readings = routes.map(found => {
    const { rule } = found
    const route = rule === null ? null : apply(routeLevel(active, rule, caller, nowUs))
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

/** Resolves a check that names a policy or a tier, bypassing the rules. */
export function resolveAsk(
  active: ActiveConfig,
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

/** Denies a request with too many readings, because what they lead to cannot be worked out. */
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

/** One resolved reading of a request. */
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
  // A rule for a path takes precedence over skipping; in shadow it only watches, and the request is still skipped.
  const onTrial = isSkippable && namedByPath && route?.isShadow === true
  const skipped = isSkippable && !namedByPath
  const spoken = onTrial ? levels.slice(0, 1) : levels
  const decider = assignParts(active, skipped ? [] : spoken)
  for (const level of spoken) level.readings.push(...readings)
  return { ...decider, levels: spoken, skipped, cost: costOf(spoken, decider.deciding) ?? listedCost }
}

/**
 * Shadow levels step aside and the next one decides, so that a rule on trial does not switch off the rule in force.
 */
function assignParts({ config }: ActiveConfig, levels: readonly AppliedLevel[]): Decider {
  const binding = levels.filter(level => !level.isShadow)
  const deciding = config.levels === 'most-specific' ? binding.slice(0, 1) : binding
  for (const level of levels) if (level.isShadow) level.part = 'shadow'
  for (const level of deciding) level.part = 'decides'
  return { levels, deciding }
}

/** Returns the cost set by the most specific deciding level; if all are in shadow, by any of them. */
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
    // One reading in compare mode must not make the limits of another reading be decided locally.
    compare: deciding.length > 0 && deciding.every(({ level }) => level.mode === 'compare'),
    levels,
    headers: speaks?.headers ?? null,
    refundIf: refundedBy(readings),
  }
}

/**
 * Returns what the most specific deciding rule gives back; with several readings, only what all of them do.
 */
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
function unaskedBecause(
  { control }: ActiveConfig,
  isSkipped: boolean,
  { alternatives }: Question,
): Unasked | null {
  if (!control.enabled) return 'disabled'
  if (control.multiplier === 0 && alternatives.some(checks => checks.length === 0)) return 'paused'
  return isSkipped ? 'skipped' : null
}
