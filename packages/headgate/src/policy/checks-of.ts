/** Turns the levels of a request into a question: alternatives of binding checks, and shadow checks. */
import type { Limit } from '../algorithms/algorithm.js'
import { type Check, type FailureMode, stateOf } from '../check/check.js'
import { countsRequests } from '../check/plan.js'
import type { Question } from '../check/plans.js'
import type { ActivePolicies } from './active-policies.js'
import type { AppliedLevel } from './applied-level.js'
import type { PolicyLimit } from './policies.js'
import { isShared } from './wider-limit.js'

/** The levels of one reading of a request, the most specific first, and those that decide. */
export interface Decider {
  readonly levels: readonly AppliedLevel[]
  readonly deciding: readonly AppliedLevel[]
}

export interface Cost {
  /** The cost the request itself came with. */
  readonly given: number | null
  readonly cost: number
}

const NO_CHECKS: readonly Check[] = []

/** Makes the question of a request from the levels that its readings lead to. */
export function checksOfRequest(active: ActivePolicies, readings: readonly Decider[], costs: Cost): Question {
  const { cost } = costs
  const onStoreFailure = failureModeOf(active, readings)
  const shadow = shadowChecks(active, readings, costs)
  const alternatives = alternativesOf(active, readings, cost)
  const watched = shadow.length === 0 ? shadow : withoutLive(shadow, alternatives)
  return { alternatives, shadow: watched, onStoreFailure }
}

/** Returns the checks of a level, for its own subject and for the further subjects charged with it. */
function liveChecks(applied: AppliedLevel, cost: number): Check[] {
  const own = checksOf(applied, applied.level.configured.policy.limits, cost)
  if (applied.also.length === 0) return own
  const { level, also, units } = applied
  const others = also.flatMap(({ subject, configured }) =>
    checksOf({ subject, level, units }, configured.policy.limits, cost),
  )
  return withoutRepeats([...own, ...others])
}

/** The only place where a level becomes checks. */
function checksOf(
  { subject, level, units }: Pick<AppliedLevel, 'subject' | 'level' | 'units'>,
  limits: readonly PolicyLimit[],
  cost: number,
): Check[] {
  const { scope, per } = level
  // Where all share a budget there is nobody to ban.
  const own = per === 'everyone' ? limits.filter(isShared) : limits
  return own.map(({ name, limit }) => ({
    subject,
    scope,
    name,
    limit,
    cost: unitsTaken(limit, units ?? cost),
  }))
}

/** Returns a check for every state a level keeps about its subject, whether it binds or not. */
export function statesOf(level: AppliedLevel): Check[] {
  const { policy, candidate } = level.level.configured
  return checksOf(level, [...policy.limits, ...candidate], 0)
}

const LEVELS = ['route', 'caller', 'global'] as const

/** Every alternative must satisfy every reading, because we do not know which of them the server uses. */
function alternativesOf(
  { config }: ActivePolicies,
  readings: readonly Decider[],
  cost: number,
): readonly (readonly Check[])[] {
  const [only, ...others] = readings
  const [first, ...more] = only?.deciding ?? []
  // Shortcut for most requests: one level of one reading has no repeated states.
  if (first !== undefined && more.length === 0 && others.length === 0) return [liveChecks(first, cost)]
  const together = (levels: readonly AppliedLevel[]) =>
    withoutRepeats(mostSpecificFirst(levels).flatMap(level => liveChecks(level, cost)))
  if (config.levels !== 'first-available') return [together(readings.flatMap(({ deciding }) => deciding))]
  const steps = LEVELS.filter(name => readings.some(({ deciding }) => deciding.some(isOn(name))))
  if (steps.length === 0) return [[]]
  // A reading without a rule on this level takes part with its next less specific one.
  return steps.map(name => together(readings.flatMap(({ deciding }) => levelAt(deciding, name))))
}

/** Each level once, even if several readings lead to it. */
function mostSpecificFirst(levels: readonly AppliedLevel[]): readonly AppliedLevel[] {
  return [...new Set(levels)].toSorted(
    (one, other) => LEVELS.indexOf(one.level.level) - LEVELS.indexOf(other.level.level),
  )
}

function isOn(name: string) {
  return ({ level }: AppliedLevel) => level.level === name
}

/** Returns the level a reading is asked at: the one of that name, or the next less specific one it has. */
function levelAt(deciding: readonly AppliedLevel[], name: (typeof LEVELS)[number]): readonly AppliedLevel[] {
  const from = LEVELS.indexOf(name)
  const found = deciding.find(({ level }) => LEVELS.indexOf(level.level) >= from)
  return found === undefined ? [] : [found]
}

function shadowChecks(
  active: ActivePolicies,
  readings: readonly Decider[],
  { given, cost }: Cost,
): readonly Check[] {
  // While throttling is paused, shadow limits are not asked either.
  if (active.control.multiplier === 0) return NO_CHECKS
  let checks: readonly Check[] = NO_CHECKS
  for (const level of levelsOf(readings)) {
    const isShadow = level.part === 'shadow'
    const { configured, cost: costOfRule } = level.level
    // A shadow level is charged as if it were enforced; the enforced ones are charged as if it did not exist.
    const ownCost = isShadow ? (given ?? costOfRule ?? cost) : cost
    if (isShadow) checks = [...checks, ...liveChecks(level, ownCost)]
    const { candidate } = configured
    if (level.part !== 'unused' && candidate.length > 0)
      checks = [...checks, ...checksOf(level, candidate, ownCost)]
  }
  return checks
}

/** Returns all levels that a request leads to. */
export function levelsOf(readings: readonly Decider[]): readonly AppliedLevel[] {
  const [only] = readings
  if (only !== undefined && readings.length === 1) return only.levels
  return mostSpecificFirst(readings.flatMap(({ levels }) => levels))
}

const STRICTEST_FIRST: readonly FailureMode[] = ['closed', 'local', 'open']

/** Returns the strictest failure mode that the readings ask for; null if none does. */
function failureModeOf({ defaultFailure }: ActivePolicies, readings: readonly Decider[]): FailureMode | null {
  const said = readings.map(
    ({ levels, deciding }) => (deciding[0] ?? levels[0])?.level.onStoreFailure ?? null,
  )
  const [only = null] = said
  if (said.every(mode => mode === only)) return only
  return STRICTEST_FIRST.find(mode => said.some(one => (one ?? defaultFailure) === mode)) ?? null
}

/** Drops states that a binding check already charges: in shadow they would be charged twice. */
function withoutLive(shadow: readonly Check[], alternatives: readonly (readonly Check[])[]): Check[] {
  const live = new Set(alternatives.flat().map(stateOf))
  return withoutRepeats(shadow).filter(check => !live.has(stateOf(check)))
}

/** Charges a budget that several levels lead to only once, by the strictest of them and as much as the dearest takes. */
function withoutRepeats(checks: readonly Check[]): Check[] {
  const byState = new Map<string, Check>()
  for (const check of checks) {
    const state = stateOf(check)
    const known = byState.get(state)
    const stricter = known === undefined || check.limit.limit < known.limit.limit ? check : known
    const cost = Math.max(check.cost, known?.cost ?? 0)
    byState.set(state, stricter.cost === cost ? stricter : { ...stricter, cost })
  }
  return [...byState.values()]
}

/** Returns the units that a request of this cost takes from a limit. */
function unitsTaken(limit: Limit, cost: number): number {
  return countsRequests(limit) ? 1 : cost
}

/** Returns the most that a request may cost to be admitted by all of them; Infinity if none counts costs. */
export function mostCostOf(limits: readonly Limit[]): number {
  const counting = limits.filter(limit => !countsRequests(limit))
  return counting.reduce((most, { limit }) => Math.min(most, limit), Number.POSITIVE_INFINITY)
}
