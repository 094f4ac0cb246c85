/**
 * Which rule speaks on each level, from the most specific to the least: the route, the caller, everybody.
 * How the levels combine is the next step (`resolve.ts`); here each is found by itself.
 */
import type {
  Charge,
  Config,
  Enforcement,
  HeaderStyleName,
  MatchConfig,
  Mode,
  RuleConfig,
  StoreFailure,
} from './config.js'
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

/**
 * What one level says about a request. A class, not an object put together from parts: it is made for every request, and
 * spreading took longer than all the rest.
 */
export class Level {
  /** Whether it decides, is evaluated in shadow, or gives way to a more specific one. */
  part: 'decides' | 'shadow' | 'unused' = 'unused'
  /** Whether it holds for the method as it was sent, as it is claimed to be, or either way. */
  readAs: 'sent' | 'claimed' | 'both' = 'both'
  readonly mode: Mode
  readonly enforcePercent: number
  readonly cost: number | null
  readonly onStoreFailure: StoreFailure | null
  readonly headers: HeaderStyleName | null

  /** What a rule leaves open its policy says, and what that leaves open the file. */
  constructor(
    config: Config,
    readonly level: 'route' | 'caller' | 'global',
    /** The rule that speaks: its name, or the part of the file that does. */
    readonly rule: string,
    readonly configured: ConfiguredPolicy,
    /** Whose budget, and which. */
    readonly subject: string,
    readonly scope: string,
    /** Who asks, also where the budget is everyone's. */
    readonly caller: string,
    settings: Settings,
    readonly override: CompiledOverride | null,
  ) {
    const ofPolicy = configured.settings
    const speaks = saysHowFar(settings) ? settings : saysHowFar(ofPolicy) ? ofPolicy : null
    // A percentage speaks of enforcing: together with the mode above it, it would say two things.
    this.mode = speaks === null ? config.mode : (speaks.mode ?? 'enforce')
    this.enforcePercent = speaks === null ? config.enforcePercent : (speaks.enforcePercent ?? 100)
    this.cost = settings.cost ?? null
    this.onStoreFailure = settings.onStoreFailure ?? ofPolicy.onStoreFailure ?? config.onStoreFailure ?? null
    this.headers = settings.headers ?? config.headers ?? null
  }
}

interface Settings extends Enforcement {
  readonly cost?: number
  readonly onStoreFailure?: StoreFailure
  readonly headers?: HeaderStyleName
}

const NO_SETTINGS: Settings = {}

function saysHowFar({ mode, enforcePercent }: Enforcement): boolean {
  return mode !== undefined || enforcePercent !== undefined
}

/** The levels that have something to say, the most specific first, and the tier the caller was found to have. */
export interface FoundLevels {
  readonly levels: readonly Level[]
  readonly tier: string | null
  /** Whether the rule of the route names the path, not only a method. */
  readonly namedByPath: boolean
}

/** Nobody's name: the id of a real subject that begins with a tilde is digested. */
const EVERYONE = 'global:~all'
/** One budget for all routes. */
const GLOBAL = 'global'

export function findLevels(inForce: InForce, facts: CanonicalFacts, nowUs: number): FoundLevels {
  const { config } = inForce
  const caller = findCaller(inForce, facts, nowUs)
  const levels: Level[] = []
  const route = findRule(inForce.routeRules, facts, caller.tier)
  if (route !== undefined) levels.push(ruleLevel(inForce, route, facts, caller, nowUs))
  const claimed = findClaimedRule(inForce, facts, caller.tier)
  if (claimed !== route) {
    if (levels[0] !== undefined) levels[0].readAs = 'sent'
    if (claimed !== undefined) {
      const level = ruleLevel(inForce, claimed, facts, caller, nowUs)
      level.readAs = 'claimed'
      levels.push(level)
    }
  }
  levels.push(callerLevel(inForce, facts, caller, nowUs))
  const { global } = config
  if (global !== null) {
    const configured = inForce.policies.get(global.policy) as ConfiguredPolicy
    levels.push(
      new Level(config, 'global', 'global', configured, EVERYONE, GLOBAL, caller.subject, global, null),
    )
  }
  const namedByPath = [route, claimed].some(rule => rule !== undefined && rule.match.path !== null)
  return { levels, tier: caller.tier, namedByPath }
}

/** The one level of a caller that is asked about by the name of a policy or a tier. */
export function askedLevel(
  inForce: InForce,
  asked: { readonly subject: string; readonly charge: Charge; readonly scope: string },
  nowUs: number,
): Level {
  const { subject, charge, scope } = asked
  const found = findOverride(inForce, [subject], nowUs)
  // Another tier, or numbers that make one, are no answer to a question about a policy.
  const override = charge.tier !== undefined || (found !== null && 'limits' in found.override) ? found : null
  const configured = replaced(inForce, policyNamed(inForce, charge, null), override)
  return new Level(
    inForce.config,
    'caller',
    'asked',
    configured,
    subject,
    scope,
    subject,
    NO_SETTINGS,
    override,
  )
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
  const entry = findEntry(inForce, facts.subjects)
  const override = findOverride(inForce, facts.subjects, nowUs)
  const named = override !== null && 'tier' in override.override ? override.override.tier : null
  const lifted = named !== null && inForce.tiers.has(named) ? named : null
  return {
    subject: facts.subjects[0] as string,
    tier: lifted ?? entry?.tier ?? facts.tier ?? inForce.config.default.tier ?? null,
    policy: lifted === null ? (entry?.policy ?? null) : null,
    override,
    because: entry === undefined ? 'default' : 'subjects',
  }
}

function findEntry({ subjects }: InForce, names: readonly string[]): Charge | undefined {
  if (subjects.size === 0) return undefined
  return names.map(name => subjects.get(name)).find(charge => charge !== undefined)
}

function callerLevel(inForce: InForce, facts: CanonicalFacts, caller: Caller, nowUs: number): Level {
  const rule = caller.policy === null ? findRule(inForce.callerRules, facts, caller.tier) : undefined
  if (rule !== undefined) return ruleLevel(inForce, rule, facts, caller, nowUs)
  const charge = caller.policy === null ? inForce.config.default : { policy: caller.policy }
  const base = policyNamed(inForce, charge, caller.policy === null ? caller.tier : null)
  const configured = replaced(inForce, base, caller.override)
  const { subject, because, override } = caller
  return new Level(
    inForce.config,
    'caller',
    because,
    configured,
    subject,
    GLOBAL,
    subject,
    NO_SETTINGS,
    override,
  )
}

function ruleLevel(
  inForce: InForce,
  rule: RuleConfig,
  facts: CanonicalFacts,
  caller: Caller,
  nowUs: number,
): Level {
  const isRoute = isRouteRule(rule)
  const types = rule.match.subjects
  const matched = types === null ? undefined : facts.subjects.find(name => types.includes(typeOf(name)))
  const asking = matched ?? caller.subject
  const subject = rule.per === 'everyone' ? EVERYONE : asking
  const tier = rule.charge === null ? caller.tier : null
  const ofRule = findRuleOverride(inForce, rule, nowUs)
  const base = replaced(inForce, policyNamed(inForce, rule.charge ?? inForce.config.default, tier), ofRule)
  // What is set for a caller holds on the caller's level, not on a route's.
  const configured = isRoute ? base : replaced(inForce, base, caller.override)
  const override = isRoute ? ofRule : (caller.override ?? ofRule)
  const level = isRoute ? 'route' : 'caller'
  return new Level(inForce.config, level, rule.name, configured, subject, rule.scope, asking, rule, override)
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
  compiled: CompiledOverride | null,
): ConfiguredPolicy {
  if (compiled === null) return configured
  const { override, policy } = compiled
  if (policy !== null) return { ...policy, settings: configured.settings }
  if ('tier' in override) return inForce.tiers.get(override.tier) ?? configured
  return 'limits' in override
    ? withReplacedUnits(configured, override.limits, inForce.control.multiplier)
    : configured
}

function findOverride(inForce: InForce, subjects: readonly string[], nowUs: number): CompiledOverride | null {
  if (inForce.overrides.size === 0) return null
  for (const subject of subjects) {
    const found = inForce.overrides.get(targetKey({ subject }))
    if (found !== undefined && found.endsAtUs > nowUs) return found
  }
  return null
}

function findRuleOverride(inForce: InForce, { name }: RuleConfig, nowUs: number): CompiledOverride | null {
  if (inForce.overrides.size === 0) return null
  const found = inForce.overrides.get(targetKey({ rule: name }))
  return found !== undefined && found.endsAtUs > nowUs ? found : null
}

/** The rule of the route if the server takes the request for what it claims to be. */
function findClaimedRule(
  { routeRules }: InForce,
  facts: CanonicalFacts,
  tier: string | null,
): RuleConfig | undefined {
  const { claimedMethod, method } = facts
  const as = claimedMethod === null || claimedMethod === method ? facts : { ...facts, method: claimedMethod }
  return findRule(routeRules, as, tier)
}

function findRule(
  rules: readonly CompiledRule[],
  facts: CanonicalFacts,
  tier: string | null,
): RuleConfig | undefined {
  for (const compiled of rules) if (matches(compiled, facts, tier)) return compiled.rule
  return undefined
}

function matches({ rule, pattern }: CompiledRule, facts: CanonicalFacts, tier: string | null): boolean {
  const { match } = rule
  return (
    matchesMethod(match, facts.method) &&
    (pattern === null || (facts.path !== null && matchesPattern(pattern, facts.path))) &&
    (match.tiers === null || (tier !== null && match.tiers.includes(tier))) &&
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
