/** Finds the levels that an override is about, for `override-effect.ts`. */
import { invalidOption } from '../errors/headgate-error.js'
import { ANONYMOUS, typeOf } from '../subject/subject.js'
import type { ActiveConfig } from './active-config.js'
import { askedLevel, GLOBAL } from './asked-level.js'
import { isRouteRule } from './compiled-config.js'
import type { Config, RuleConfig } from './config.js'
import { askedBy, type Caller, callerLevel, findCaller, routeLevel } from './find-levels.js'
import type { OverrideTarget } from './override.js'
import type { Concerned } from './override-effect.js'
import { compilePattern } from './path-pattern.js'
import { DEFAULT_TIERS } from './tier-numbers.js'

/** Finds whose limits the override of a target replaces: by the rules of a policy file. */
export function concernedBy(active: ActiveConfig, target: OverrideTarget, nowUs: number): Concerned {
  const { rulesByName, config } = active
  if (target.policy !== undefined) return inOnePolicy(active, target.policy, target, nowUs)
  const subjects = ['subject' in target ? target.subject : ANONYMOUS]
  /** A subject whose tier the file does not say may be of any tier: requests tell. */
  const callers = tiersToTry(active, subjects[0] as string).map(tier =>
    findCaller(active, { subjects, tier }, nowUs),
  )
  const rule = target.rule === undefined ? undefined : rulesByName.get(target.rule)
  if (rule !== undefined) {
    if ('subject' in target) rejectForRule(target.subject, rule)
    const levels = callers.map(caller => routeLevel(active, rule, caller, nowUs))
    return { levels, otherRules: new Map(), otherPolicies: limitsByPolicy(active, policiesBeside(rule)) }
  }
  const type = typeOf(subjects[0] as string)
  const about = config.rules.filter(one => isRouteRule(one) && isAbout(one, type, null))
  const own = about.filter(({ charge }) => charge !== null)
  const isDecidedByRules = config.levels === 'most-specific' && own.some(one => isForAll(active, one, nowUs))
  const levels = callers.flatMap(caller =>
    isDecidedByRules
      ? about.filter(({ charge }) => charge === null).map(one => routeLevel(active, one, caller, nowUs))
      : [callerLevel(active, askedBy({ subjects, scope: null }, caller.tier), caller, nowUs)],
  )
  const asked = askedOnly(config).map(policy =>
    askedLevel(active, { subject: subjects[0] as string, charge: { policy }, scope: GLOBAL }, nowUs),
  )
  const otherRules = own.map(one => {
    const { unscaled } = routeLevel(active, one, callers[0] as Caller, nowUs).configured
    return [one.name, unscaled.limits.map(({ limit }) => limit.id)] as const
  })
  const beside = config.rules.filter(one => isAbout(one, type, null)).flatMap(policiesBeside)
  return {
    levels: [...levels, ...asked],
    otherRules: new Map(otherRules),
    otherPolicies: limitsByPolicy(active, beside),
  }
}

/** An override of a policy is about nothing else. */
function inOnePolicy(active: ActiveConfig, policy: string, target: OverrideTarget, nowUs: number): Concerned {
  const subject = 'subject' in target ? target.subject : ANONYMOUS
  const level = askedLevel(active, { subject, charge: { policy }, scope: GLOBAL }, nowUs)
  return { levels: [level], otherRules: new Map(), otherPolicies: new Map() }
}

/** Null stands for whatever holds for callers of whom no tier is known; the file may say of which tier the subject is. */
function tiersToTry({ config, subjects }: ActiveConfig, subject: string): readonly (string | null)[] {
  const isKnown = subjects.get(subject) !== undefined
  return isKnown || !usesTiers(config) ? [null] : [null, ...Object.keys(config.tiers)]
}

/** Whether a caller can have a tier: the file names one anywhere, or has tiers of its own. */
function usesTiers({ default: byDefault, rules, identify, tiers }: Config): boolean {
  const isNamed =
    byDefault.tier !== undefined ||
    rules.some(({ charge, match }) => charge?.tier !== undefined || match.tiers !== null) ||
    (identify ?? []).some(source => 'tier' in source || 'tierClaim' in source)
  return isNamed || JSON.stringify(tiers) !== JSON.stringify(DEFAULT_TIERS)
}

function rejectForRule(subject: string, { name, per, match }: RuleConfig): void {
  if (per === 'everyone') {
    const expected = `none beside the rule ${name}, whose budget everybody shares`
    throw invalidOption('override subject', expected, subject)
  }
  if (match.subjects === null || match.subjects.includes(typeOf(subject))) return
  const expected = `one that the rule ${name} is about: ${match.subjects.join(', ')}`
  throw invalidOption('override subject', expected, subject)
}

/** Whether a rule decides every request that it is asked about. */
function isForAll(active: ActiveConfig, rule: RuleConfig, nowUs: number): boolean {
  const { path, methods, tiers, scopes } = rule.match
  if (path === null || methods !== null || tiers !== null || scopes !== null) return false
  const { segments, open } = compilePattern(path)
  const nobody = findCaller(active, { subjects: [ANONYMOUS], tier: null }, nowUs)
  const { mode, enforcePercent } = routeLevel(active, rule, nobody, nowUs)
  return open && segments.length === 0 && mode !== 'shadow' && enforcePercent === 100
}

/** The policies that the file gives nobody, so that they can only be asked by name. */
function askedOnly(config: Config): readonly string[] {
  const charges = [config.default, ...config.subjects.values(), ...config.rules.map(({ charge }) => charge)]
  const used = new Set([
    config.global?.policy,
    ...charges.map(charge => charge?.policy),
    ...config.rules.flatMap(policiesBeside),
  ])
  return Object.keys(config.policies).filter(policy => !used.has(policy))
}

/** The policies that a rule charges beside its own: to other subjects, and for tokens. */
function policiesBeside({ also = [], tokens = [] }: RuleConfig): readonly string[] {
  return [...also, ...tokens].map(({ policy }) => policy)
}

/** The ids of the limits of these policies. */
function limitsByPolicy({ policies }: ActiveConfig, names: readonly string[]): Concerned['otherPolicies'] {
  return new Map(names.map(name => [name, policies.get(name)?.limits.map(({ limit }) => limit.id) ?? []]))
}

/** Whether a rule may be about subjects of a type and a tier. */
export function isAbout({ match }: RuleConfig, type: string, tier: string | null): boolean {
  if (match.subjects !== null && !match.subjects.includes(type)) return false
  return match.tiers === null || (tier !== null && match.tiers.includes(tier))
}
