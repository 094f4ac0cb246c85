/**
 * Which rule speaks on each level, from the most specific to the least: the route, the caller, everybody.
 * How the levels combine is the next step (`resolve.ts`); here each is found by itself.
 */
import type { Charge, HeaderStyleName, MatchConfig, Mode, RuleConfig, StoreFailure } from './config.js'
import {
  type CompiledOverride,
  type CompiledRule,
  type ConfiguredPolicy,
  type InForce,
  isRouteRule,
  withReplacedUnits,
} from './in-force.js'
import { targetKey } from './override.js'
import { matchesPattern } from './path-pattern.js'
import type { CanonicalFacts } from './request-facts.js'

/** What one level says about a request. */
export interface Level {
  readonly level: 'route' | 'caller' | 'global'
  /** The rule that speaks: its name, or the part of the file that does. */
  readonly rule: string
  readonly configured: ConfiguredPolicy
  /** Whose budget, and which. */
  readonly subject: string
  readonly scope: string
  readonly mode: Mode
  readonly enforcePercent: number
  readonly cost: number | null
  readonly onStoreFailure: StoreFailure | null
  readonly headers: HeaderStyleName | null
  readonly override: CompiledOverride | null
}

/** The levels that have something to say, the most specific first, and the tier the caller was found to have. */
export interface FoundLevels {
  readonly levels: readonly Level[]
  readonly tier: string | null
}

const EVERYONE = 'global:all'

export function findLevels(inForce: InForce, facts: CanonicalFacts, nowUs: number): FoundLevels {
  const caller = findCaller(inForce, facts, nowUs)
  const found = { ...facts, tier: caller.tier }
  const levels: Level[] = []
  const route = inForce.routeRules.find(rule => matches(rule, found))
  if (route !== undefined) levels.push(ruleLevel(inForce, route.rule, found, caller, nowUs))
  levels.push(callerLevel(inForce, found, caller, nowUs))
  const { global } = inForce.config
  if (global !== null) {
    const configured = policyNamed(inForce, { policy: global.policy }, null)
    levels.push(
      levelOf(inForce, { level: 'global', rule: 'global', configured, subject: EVERYONE, settings: global }),
    )
  }
  return { levels, tier: caller.tier }
}

/** The one level of a caller that is asked about by the name of a policy or a tier. */
export function askedLevel(
  inForce: InForce,
  asked: { readonly subject: string; readonly charge: Charge; readonly scope: string },
  nowUs: number,
): Level {
  const { subject, charge, scope } = asked
  const configured = policyNamed(inForce, charge, null)
  const level = levelOf(inForce, { level: 'caller', rule: 'asked', configured, subject, settings: {} })
  const override = findOverride(inForce, [targetKey({ subject })], nowUs)
  // Another tier, or numbers that make one, are no answer to a question about a policy.
  const applies = override !== null && (charge.tier !== undefined || 'limits' in override.override)
  if (!applies) return { ...level, scope }
  return { ...level, scope, configured: replaced(inForce, configured, override), override }
}

/** Who the caller is, as far as the file and the overrides know. */
interface Caller {
  readonly subject: string
  readonly tier: string | null
  /** A policy of the caller's own. */
  readonly policy: string | null
  readonly override: CompiledOverride | null
  /** What said so. */
  readonly because: string
}

function findCaller(inForce: InForce, facts: CanonicalFacts, nowUs: number): Caller {
  const subject = facts.subjects[0] as string
  const entry = facts.subjects.map(name => inForce.subjects.get(name)).find(charge => charge !== undefined)
  const override = findOverride(
    inForce,
    facts.subjects.map(name => targetKey({ subject: name })),
    nowUs,
  )
  const lifted = override !== null && 'tier' in override.override ? override.override.tier : null
  const tierOfFile = entry?.tier ?? facts.tier ?? inForce.config.default.tier ?? null
  const tier = lifted !== null && inForce.tiers.has(lifted) ? lifted : tierOfFile
  const because = entry === undefined ? 'default' : 'subjects'
  return { subject, tier, policy: lifted === null ? (entry?.policy ?? null) : null, override, because }
}

function callerLevel(inForce: InForce, facts: CanonicalFacts, caller: Caller, nowUs: number): Level {
  const matched = caller.policy === null ? inForce.callerRules.find(rule => matches(rule, facts)) : undefined
  const level =
    matched === undefined
      ? defaultLevel(inForce, caller)
      : ruleLevel(inForce, matched.rule, facts, caller, nowUs)
  const { override } = caller
  if (override === null) return level
  return { ...level, configured: replaced(inForce, level.configured, override), override }
}

function defaultLevel(inForce: InForce, caller: Caller): Level {
  const toldTier = caller.tier === null ? null : { tier: caller.tier }
  const charge = caller.policy === null ? (toldTier ?? inForce.config.default) : { policy: caller.policy }
  const configured = policyNamed(inForce, charge, null)
  return levelOf(inForce, {
    level: 'caller',
    rule: caller.because,
    configured,
    subject: caller.subject,
    settings: {},
  })
}

function ruleLevel(
  inForce: InForce,
  rule: RuleConfig,
  facts: CanonicalFacts,
  caller: Caller,
  nowUs: number,
): Level {
  const types = rule.match.subjects
  const subject =
    types === null ? caller.subject : (facts.subjects.find(name => types.includes(typeOf(name))) as string)
  const base = policyNamed(
    inForce,
    rule.charge ?? inForce.config.default,
    rule.charge === null ? caller.tier : null,
  )
  const override = findOverride(inForce, [targetKey({ rule: rule.name })], nowUs)
  const level = levelOf(inForce, {
    level: isRouteRule(rule) ? 'route' : 'caller',
    rule: rule.name,
    configured: override === null ? base : replaced(inForce, base, override),
    subject: rule.per === 'everyone' ? EVERYONE : subject,
    settings: rule,
  })
  return { ...level, scope: rule.scope, cost: rule.cost ?? null, override }
}

interface Settings {
  readonly mode?: Mode
  readonly enforcePercent?: number
  readonly onStoreFailure?: StoreFailure
  readonly headers?: HeaderStyleName
}

/** What a rule leaves open its policy says, and what that leaves open the file. */
function levelOf(
  { config }: InForce,
  found: Pick<Level, 'level' | 'rule' | 'configured' | 'subject'> & { readonly settings: Settings },
): Level {
  const { settings, ...level } = found
  const ofPolicy = level.configured.settings
  const speaks = [settings, ofPolicy].find(one => one.mode !== undefined || one.enforcePercent !== undefined)
  return {
    ...level,
    scope: 'global',
    // A percentage speaks of enforcing: together with the mode above it, it would say two things.
    mode: speaks === undefined ? config.mode : (speaks.mode ?? 'enforce'),
    enforcePercent: speaks === undefined ? config.enforcePercent : (speaks.enforcePercent ?? 100),
    cost: null,
    onStoreFailure: settings.onStoreFailure ?? ofPolicy.onStoreFailure ?? config.onStoreFailure ?? null,
    headers: settings.headers ?? config.headers ?? null,
    override: null,
  }
}

/** A tier known for the caller goes before the tier that is meant for those without one. */
function policyNamed(inForce: InForce, charge: Charge, tierOfCaller: string | null): ConfiguredPolicy {
  if (tierOfCaller !== null) return inForce.tiers.get(tierOfCaller) as ConfiguredPolicy
  const configured =
    charge.policy === undefined ? inForce.tiers.get(charge.tier) : inForce.policies.get(charge.policy)
  return configured as ConfiguredPolicy
}

function replaced(
  inForce: InForce,
  configured: ConfiguredPolicy,
  { override, policy }: CompiledOverride,
): ConfiguredPolicy {
  if (policy !== null) return { ...policy, settings: configured.settings }
  if ('tier' in override) return inForce.tiers.get(override.tier) ?? configured
  return 'limits' in override
    ? withReplacedUnits(configured, override.limits, inForce.control.multiplier)
    : configured
}

function findOverride(inForce: InForce, keys: readonly string[], nowUs: number): CompiledOverride | null {
  if (inForce.overrides.size === 0) return null
  for (const key of keys) {
    const found = inForce.overrides.get(key)
    if (found !== undefined && found.endsAtUs > nowUs) return found
  }
  return null
}

function matches({ rule, pattern }: CompiledRule, facts: CanonicalFacts): boolean {
  const { match } = rule
  return (
    matchesMethod(match, facts.method) &&
    (pattern === null || (facts.path !== null && matchesPattern(pattern, facts.path))) &&
    (match.tiers === null || (facts.tier !== null && match.tiers.includes(facts.tier))) &&
    (match.scopes === null || (facts.scope !== null && match.scopes.includes(facts.scope))) &&
    (match.subjects === null || facts.subjects.some(name => match.subjects?.includes(typeOf(name))))
  )
}

/** Frameworks answer HEAD with the handler of GET. */
function matchesMethod({ methods }: MatchConfig, method: string | null): boolean {
  if (methods === null) return true
  return method !== null && (methods.includes(method) || (method === 'HEAD' && methods.includes('GET')))
}

function typeOf(subject: string): string {
  return subject.slice(0, subject.indexOf(':'))
}
