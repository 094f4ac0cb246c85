/**
 * Request facts, the policy file, overrides and control become checks: which limits a request is asked against, whose
 * they are, and which of them bind. One pure function; nothing else decides what applies.
 */
import type { Check, Question } from '../engine/question.js'
import { SingleQuestion } from '../engine/single.js'
import type { Charge, CostConfig, HeaderStyleName } from './config.js'
import { askedLevel, findLevels, type Level } from './find-levels.js'
import type { InForce } from './in-force.js'
import { matchesEveryReading, matchesPattern } from './path-pattern.js'
import type { NamedLimit } from './policies.js'
import type { CanonicalFacts } from './request-facts.js'

/** Why nothing is asked: the switch is off, the multiplier is 0, or the file skips the request. */
export type Unasked = 'disabled' | 'paused' | 'skipped'

/** What is to be asked about a request, and how its answer is to be read. */
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
  readonly levels: readonly Level[]
  readonly headers: HeaderStyleName | null
}

const NO_QUESTION: Question = { alternatives: [[]], shadow: [] }
const NO_CHECKS: readonly Check[] = []

/** What the rules say about a request. */
export function resolve(inForce: InForce, facts: CanonicalFacts, nowUs: number): Resolution {
  const { levels, tier, namedByPath } = findLevels(inForce, facts, nowUs)
  assignParts(inForce, levels)
  const off = whileOff(inForce)
  const isSkippable = off === null && isSkipped(inForce, facts)
  // A rule that names a path means it, whatever a file of that name would look like; one on trial only watches it.
  const onTrial = isSkippable && namedByPath && levels[0]?.part === 'shadow'
  return conclude(inForce, onTrial ? levels.slice(0, 1) : levels, {
    unasked: isSkippable && !namedByPath ? 'skipped' : off,
    tier,
    given: facts.cost,
    cost: facts.cost ?? costOf(inForce, facts, levels),
  })
}

/** What is asked by the name of a policy or a tier, past the rules. */
export function resolveAsk(
  inForce: InForce,
  asked: { readonly subject: string; readonly charge: Charge; readonly scope: string; readonly cost: number },
  nowUs: number,
): Resolution {
  const level = askedLevel(inForce, asked, nowUs)
  assignParts(inForce, [level])
  const { tier } = level.configured.policy
  const { cost } = asked
  return conclude(inForce, [level], { unasked: whileOff(inForce), tier, given: cost, cost })
}

interface Found extends Pick<Resolution, 'unasked' | 'tier' | 'cost'> {
  /** The cost the request itself came with. */
  readonly given: number | null
}

function conclude(inForce: InForce, levels: readonly Level[], found: Found): Resolution {
  const decides = levels.find(({ part }) => part === 'decides')
  const { unasked, tier, cost } = found
  return {
    unasked,
    tier,
    cost,
    question: unasked === null ? questionOf(inForce, levels, found) : NO_QUESTION,
    compare: decides?.mode === 'compare',
    levels,
    headers: (decides ?? levels[0])?.headers ?? null,
  }
}

function whileOff({ control }: InForce): Unasked | null {
  if (!control.enabled) return 'disabled'
  return control.multiplier === 0 ? 'paused' : null
}

function isSkipped({ config, skippedPrefixes }: InForce, facts: CanonicalFacts): boolean {
  const { path } = facts
  if (path === null) return false
  // Skipped only if no server could read it as something else.
  if (skippedPrefixes.some(prefix => matchesEveryReading(prefix, path))) return true
  const isRead = (facts.method === 'GET' || facts.method === 'HEAD') && facts.claimedMethod === null
  return isRead && path.every(reading => config.skip.extensions.includes(extensionOf(reading.at(-1) ?? '')))
}

function extensionOf(segment: string): string {
  const dot = segment.lastIndexOf('.')
  return dot <= 0 ? '' : segment.slice(dot + 1)
}

/** Shadow levels step aside and the next one decides, so that a rule on trial does not switch off what was in force. */
function assignParts({ config }: InForce, levels: readonly Level[]): void {
  for (const level of levels) {
    if (isShadow(level)) level.part = 'shadow'
    else if (config.levels !== 'most-specific') level.part = 'decides'
  }
  if (config.levels !== 'most-specific') return
  // A request that claims another method is decided by what either method leads to.
  for (const reading of ['sent', 'claimed']) {
    const first = levels.find(
      ({ part, readAs }) => part !== 'shadow' && (readAs === 'both' || readAs === reading),
    )
    if (first !== undefined) first.part = 'decides'
  }
}

function isShadow({ mode, enforcePercent, caller }: Level): boolean {
  if (mode === 'shadow') return true
  return mode === 'enforce' && enforcePercent < 100 && shareOf(caller) >= enforcePercent
}

/** Where a subject stands between 0 and 100: always at the same place, so that a growing percentage only adds. */
function shareOf(subject: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < subject.length; index++) {
    hash = Math.imul(hash ^ subject.charCodeAt(index), 0x01000193)
  }
  // The last characters of an id have only reached the low bits; this spreads them over all.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32) * 100
}

function questionOf(inForce: InForce, levels: readonly Level[], found: Found): Question {
  const { cost } = found
  const deciding = levels.filter(({ part }) => part === 'decides')
  const [first = levels[0]] = deciding
  const onStoreFailure = first?.onStoreFailure ?? null
  const shadow = shadowChecks(levels, found)
  const [limit, ...others] = first?.configured.policy.limits ?? []
  // Most requests meet one limit, and a store knows a shorter way for these.
  if (
    deciding.length === 1 &&
    limit !== undefined &&
    others.length === 0 &&
    shadow.length === 0 &&
    onStoreFailure === null
  ) {
    const { subject, scope } = first as Level
    return new SingleQuestion(subject, scope, limit.name, limit.limit, cost)
  }
  const alternatives = alternativesOf(inForce, deciding, cost)
  return {
    alternatives: alternatives.length === 0 ? [[]] : alternatives,
    shadow: shadow.length === 0 ? shadow : withoutLive(shadow, alternatives),
    ...(onStoreFailure !== null && { onStoreFailure }),
  }
}

function alternativesOf(
  { config }: InForce,
  deciding: readonly Level[],
  cost: number,
): readonly (readonly Check[])[] {
  const [first] = deciding
  if (deciding.length < 2) return first === undefined ? [] : [checksOf(first, cost)]
  const together = (levels: readonly Level[]) =>
    withoutRepeats(levels.flatMap(level => checksOf(level, cost)))
  if (config.levels !== 'first-available') return [together(deciding)]
  const names = [...new Set(deciding.map(({ level }) => level))]
  return names.map(name => together(deciding.filter(({ level }) => level === name)))
}

function shadowChecks(levels: readonly Level[], { given, cost }: Found): readonly Check[] {
  let checks: readonly Check[] = NO_CHECKS
  for (const level of levels) {
    const isShadow = level.part === 'shadow'
    // As it would be if the rule were in force; what is in force is charged as if it were not there.
    const ownCost = isShadow ? (given ?? level.cost ?? cost) : cost
    if (isShadow) checks = [...checks, ...checksOf(level, ownCost)]
    const { candidate } = level.configured
    if (level.part !== 'unused' && candidate.length > 0)
      checks = [...checks, ...checksFor(level, candidate, ownCost)]
  }
  return checks
}

/** What binds is charged already; the same state in shadow would be charged twice. */
function withoutLive(shadow: readonly Check[], alternatives: readonly (readonly Check[])[]): Check[] {
  const live = new Set(alternatives.flat().map(stateOf))
  return withoutRepeats(shadow).filter(check => !live.has(stateOf(check)))
}

function checksOf(level: Level, cost: number): Check[] {
  return checksFor(level, level.configured.policy.limits, cost)
}

function checksFor({ subject, scope }: Level, limits: readonly NamedLimit[], cost: number): Check[] {
  return limits.map(({ name, limit }) => ({ subject, scope, name, limit, cost }))
}

/** Two levels may lead to one budget; it is charged once, as the more specific one says. */
function withoutRepeats(checks: readonly Check[]): Check[] {
  const seen = new Set<string>()
  return checks.filter(check => {
    const state = stateOf(check)
    if (seen.has(state)) return false
    seen.add(state)
    return true
  })
}

function stateOf({ subject, scope, name }: Check): string {
  return JSON.stringify([subject, scope, name])
}

function costOf(inForce: InForce, facts: CanonicalFacts, levels: readonly Level[]): number {
  const allOnTrial = levels.every(({ part }) => part !== 'decides')
  const ofRules = levels.flatMap(({ level, part, cost }) =>
    cost !== null && (allOnTrial || part === 'decides') ? [{ level, cost }] : [],
  )
  const [speaks] = ofRules
  if (speaks !== undefined) {
    return Math.max(...ofRules.filter(({ level }) => level === speaks.level).map(({ cost }) => cost))
  }
  const { path, method, claimedMethod } = facts
  if (path === null) return 1
  const ofList = (as: string | null): number =>
    inForce.costs.find(entry => costMatches(entry, as) && matchesPattern(entry.pattern, path))?.cost ?? 1
  return claimedMethod === null ? ofList(method) : Math.max(ofList(method), ofList(claimedMethod))
}

function costMatches(entry: Pick<CostConfig, 'method'>, method: string | null): boolean {
  return entry.method === null || entry.method === method || (entry.method === 'GET' && method === 'HEAD')
}
