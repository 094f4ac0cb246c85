/**
 * Finds the rule that applies on each level, from the most specific to the least: route, caller, global.
 * `resolve.ts` combines the levels.
 */
import { typeOf } from '../subject/subject.js'
import type { ActiveConfig } from './active-config.js'
import type { ActiveOverride } from './active-override.js'
import { findOverride, GLOBAL, inPolicy, makeLevel, ofCaller, policyNamed } from './asked-level.js'
import type { RuleQuery } from './candidates.js'
import { isRouteRule } from './compiled-config.js'
import type { PolicyOrTier, RuleConfig } from './config.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import { chargedOf, type DeclaredLevel, type Level } from './level.js'
import { targetKey } from './override.js'
import { boundOf } from './refund-rate.js'
import type { CanonicalFacts, Minted } from './request-facts.js'

/** A caller, as the file and the overrides know it. */
export interface Caller {
  readonly subjects: readonly string[]
  readonly tier: string | null
  /** A policy set for this caller alone. */
  readonly policy: string | null
  readonly override: ActiveOverride | null
  /** The rule or part of the file that this comes from. */
  readonly because: DeclaredLevel
}

const BY_DEFAULT = ofCaller('default')
const BY_SUBJECT = ofCaller('subjects')
const NO_TYPES: readonly string[] = []

/** Finds the caller's tier, policy and override: an override's tier comes first, then the file's, then the request's. */
export function findCaller(
  active: ActiveConfig,
  { subjects, tier }: Pick<CanonicalFacts, 'subjects' | 'tier'>,
  nowUs: number,
): Caller {
  const entry = findEntry(active, subjects)
  const found = findOverride(active, subjects, nowUs)
  const named = found !== null && 'tier' in found.override ? found.override.tier : null
  const lifted = named !== null && active.tiers.has(named) ? named : null
  return {
    subjects,
    tier: lifted ?? entry?.tier ?? tier ?? active.config.default.tier ?? null,
    policy: lifted === null ? (entry?.policy ?? null) : null,
    override: found,
    because: entry === undefined ? BY_DEFAULT : BY_SUBJECT,
  }
}

/** Leaves out the subjects that the file or an operator names: they were not made up. */
export function unknownOf(active: ActiveConfig, minted: Minted | null, nowUs: number): Minted | null {
  if (minted === null || (active.subjects.size === 0 && active.overrides.size === 0)) return minted
  const isNamed = (name: string) => active.subjects.has(name) || findOverride(active, [name], nowUs) !== null
  return { ...minted, times: new Map([...minted.times].filter(([name]) => !isNamed(name))) }
}

/** Returns the attributes of a request that rules are compared with, except its method. */
export function askedBy(
  { subjects, scope }: Pick<CanonicalFacts, 'subjects' | 'scope'>,
  tier: string | null,
): Omit<RuleQuery, 'method'> {
  return { tier, scope, subjectTypes: subjects.length === 0 ? NO_TYPES : subjects.map(typeOf) }
}

/** Returns the level of a rule that matched the request. */
export function routeLevel(active: ActiveConfig, rule: RuleConfig, caller: Caller, nowUs: number): Level {
  // A rule without a charge leaves the caller to its tier, and so to its override; its tier is the override's already.
  const ofCaller = rule.charge === null && caller.override !== null && !('tier' in caller.override.override)
  return ruleLevel(active, rule, caller, ofCaller ? [caller.override as ActiveOverride] : [], nowUs)
}

/** Returns the caller's level: a policy of its own, the first matching caller rule, or the default. */
export function callerLevel(
  active: ActiveConfig,
  asked: Omit<RuleQuery, 'method'>,
  caller: Caller,
  nowUs: number,
): Level {
  const { policy, tier, override, because } = caller
  if (policy === null && !active.callerRules.isEmpty) {
    const rule = active.callerRules.find(null, { ...asked, method: null })?.value
    if (rule !== undefined) {
      return ruleLevel(active, rule, caller, override === null ? [] : [override], nowUs)
    }
  }
  const charge = policy === null ? active.config.default : { policy }
  const tierOfCaller = policy === null ? tier : null
  const base = policyNamed(active, charge, tierOfCaller)
  const overrides = inPolicy(active, base, caller.subjects, override === null ? [] : [override], nowUs)
  const make = () => makeLevel(active, because, base, overrides)
  if (overrides.length > 0) return make()
  // Only a level that holds for all callers can be reused for the next one.
  return policy === null ? cached(active, because, tier, make) : make()
}

/** Returns the level shared by all callers, or null if the file has none. */
export function globalLevel(active: ActiveConfig, nowUs: number): Level | null {
  const { global } = active.config
  if (global === null) return null
  const base = policyNamed(active, { policy: global.policy }, null)
  const overrides = inPolicy(active, base, [], [], nowUs)
  const make = () => {
    const declared: DeclaredLevel = {
      ...global,
      level: 'global',
      rule: 'global',
      scope: GLOBAL,
      per: 'everyone',
      subjectTypes: null,
    }
    return makeLevel(active, declared, base, overrides)
  }
  return overrides.length > 0 ? make() : cached(active, global, null, make)
}

/** The override of the rule is applied first, then the caller's, then the caller's for this rule, which gets reported. */
function ruleLevel(
  active: ActiveConfig,
  rule: RuleConfig,
  { tier, subjects }: Caller,
  ofCaller: readonly ActiveOverride[],
  nowUs: number,
): Level {
  const base = policyNamed(active, rule.charge ?? active.config.default, rule.charge === null ? tier : null)
  const overrides =
    active.overrides.size === 0 ? ofCaller : withRules(active, rule, base, subjects, ofCaller, nowUs)
  const make = () => makeLevel(active, speakerOf(active, rule, subjects, nowUs), base, overrides)
  // Other policies that the rule names may have overrides.
  const isAlone = rule.also === undefined && rule.tokens === undefined
  const isCommon = overrides.length === 0 && (active.overrides.size === 0 || isAlone)
  return isCommon ? cached(active, rule, rule.charge === null ? tier : null, make) : make()
}

function speakerOf(
  active: ActiveConfig,
  rule: RuleConfig,
  subjects: readonly string[],
  nowUs: number,
): DeclaredLevel {
  const { name, match, charge: _charge, also = [], tokens = [], refundIf, ...settings } = rule
  const declared: DeclaredLevel = {
    ...settings,
    ...(refundIf && { refundIf: { ...refundIf, atMost: refundIf.atMost.map(boundOf) } }),
    level: isRouteRule(rule) ? 'route' : 'caller',
    rule: name,
    subjectTypes: match.subjects,
  }
  const own = overriddenSubjects(rule, subjects)
  return {
    ...declared,
    also: also.map(({ subject: type, policy }) => {
      const paying = subjects.filter(name => typeOf(name) === type).slice(0, 1)
      return { type, configured: besideLevel(active, declared, policy, paying, nowUs).configured }
    }),
    meters: tokens.map(meter => ({
      meter,
      level: besideLevel(active, declared, meter.policy, own, nowUs),
    })),
  }
}

/** The level of another policy that a rule names, with the overrides of that policy: everybody's, and that of who pays. */
export function besideLevel(
  active: ActiveConfig,
  declared: DeclaredLevel,
  policy: string,
  paying: readonly string[],
  nowUs: number,
): Level {
  const base = policyNamed(active, { policy }, null)
  return makeLevel(active, declared, base, inPolicy(active, base, paying, [], nowUs))
}

/** The subject whose overrides hold for a rule; none where everyone shares its budget. */
function overriddenSubjects({ match, per }: RuleConfig, subjects: readonly string[]): readonly string[] {
  return per === 'everyone' ? [] : [chargedOf(match.subjects, subjects)]
}

function cached({ levels }: ActiveConfig, declared: object, tier: string | null, make: () => Level): Level {
  let byTier = levels.get(declared)
  if (byTier === undefined) {
    byTier = new Map()
    levels.set(declared, byTier)
  }
  let level = byTier.get(tier)
  if (level === undefined) {
    level = make()
    byTier.set(tier, level)
  }
  return level
}

function findEntry({ subjects }: ActiveConfig, names: readonly string[]): PolicyOrTier | undefined {
  if (subjects.size === 0) return undefined
  for (const name of names) {
    const charge = subjects.get(name)
    if (charge !== undefined) return charge
  }
  return undefined
}

function withRules(
  active: ActiveConfig,
  rule: RuleConfig,
  base: ConfiguredPolicy,
  subjects: readonly string[],
  ofCaller: readonly ActiveOverride[],
  nowUs: number,
): readonly ActiveOverride[] {
  const { overrides } = active
  const charged = overriddenSubjects(rule, subjects)
  const own = charged.map(subject => overrides.find(targetKey({ subject, rule: rule.name }), nowUs))
  const found = [overrides.find(targetKey({ rule: rule.name }), nowUs), ...ofCaller, ...own]
  return inPolicy(
    active,
    base,
    charged,
    found.filter(one => one !== null),
    nowUs,
  )
}
