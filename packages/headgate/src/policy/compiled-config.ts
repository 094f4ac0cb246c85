/**
 * The policy file, indexed for lookup by requests. It depends on the file alone and is built once per file;
 * `active-config.ts` adds what operators change at run time.
 */
import type { Steps } from '../time/steps.js'
import { type Entry, listsOf } from './candidates.js'
import type { Config, MatchConfig, PolicyOrTier, RuleConfig } from './config.js'
import { PathIndex } from './path-index.js'
import { compilePattern } from './path-pattern.js'
import { foldCase } from './path-readings.js'
import { type Policy, parsePolicy, parseTier, type TierLimits } from './policies.js'
import { limitsOfTiers, tierLimits } from './tiers.js'

export interface CompiledConfig {
  readonly config: Config
  /** As in the file, before any multiplier. */
  readonly policies: ReadonlyMap<string, Policy>
  readonly tiers: ReadonlyMap<string, Policy>
  readonly tierLimits: TierLimits | null
  /** Rules that look at the request itself. */
  readonly routeRules: PathIndex<RuleConfig>
  /** Rules that look only at the caller. */
  readonly callerRules: PathIndex<RuleConfig>
  readonly rulesByName: ReadonlyMap<string, RuleConfig>
  readonly costs: PathIndex<number>
  readonly skippedPrefixes: PathIndex<true>
  readonly skippedExtensions: ReadonlySet<string>
  readonly subjects: Config['subjects']
  /** Methods that some rule or cost names. All others are treated alike. */
  readonly namedMethods: ReadonlySet<string>
  /** Whether any path in the file has a capital letter, so that case sensitivity makes a difference. */
  readonly hasCapitals: boolean
}

/** A rule and its position in the file. */
export type FoundRule = Entry<RuleConfig>

const ANY: Omit<MatchConfig, 'path'> = { methods: null, subjects: null, tiers: null, scopes: null }

/**
 * Compiles a policy file, yielding after each entry. `nameSubject` converts the file's subjects to the names
 * requests are known by.
 */
export function* compileConfig(
  config: Config,
  nameSubject: (subject: string) => string,
): Steps<CompiledConfig> {
  let hasCapitals = false
  for (const path of pathsOf(config)) {
    hasCapitals ||= path !== foldCase(path)
    yield
  }
  const routeRules = new PathIndex<RuleConfig>(hasCapitals)
  const callerRules = new PathIndex<RuleConfig>(hasCapitals)
  const rulesByName = new Map<string, RuleConfig>()
  for (const rule of config.rules) {
    const { match, name } = rule
    const pattern = match.path === null ? null : compilePattern(match.path)
    const index = isRouteRule(rule) ? routeRules : callerRules
    index.add(pattern, listsOf(match), rule)
    if (!rulesByName.has(name)) rulesByName.set(name, rule)
    yield
  }
  const costs = new PathIndex<number>(hasCapitals)
  for (const { method, path, cost } of config.costs) {
    costs.add(compilePattern(path), listsOf({ ...ANY, methods: method === null ? null : [method] }), cost)
    yield
  }
  const skippedPrefixes = new PathIndex<true>(hasCapitals)
  for (const prefix of config.skip.prefixes) {
    skippedPrefixes.add({ ...compilePattern(prefix), open: true }, listsOf(ANY), true)
    yield
  }
  const policies = new Map<string, Policy>()
  for (const [name, { limits, ban }] of Object.entries(config.policies)) {
    policies.set(name, parsePolicy(name, limits, ban))
    yield
  }
  const tiers = new Map<string, Policy>()
  for (const [name, options] of Object.entries(config.tiers)) {
    tiers.set(name, parseTier(name, options, tierLimits(options)))
    yield
  }
  const subjects = new Map<string, PolicyOrTier>()
  for (const [subject, charge] of config.subjects) {
    subjects.set(nameSubject(subject), charge)
    yield
  }
  return {
    config,
    policies,
    tiers,
    tierLimits: limitsOfTiers,
    routeRules,
    callerRules,
    rulesByName,
    costs,
    skippedPrefixes,
    skippedExtensions: new Set(config.skip.extensions),
    subjects,
    namedMethods: namedMethods(config),
    hasCapitals,
  }
}

/** Whether a rule looks at the request itself, not only at the caller. */
export function isRouteRule({ match }: RuleConfig): boolean {
  return match.path !== null || match.methods !== null
}

function pathsOf({ rules, costs, skip }: Config): readonly string[] {
  return [...rules.map(({ match }) => match.path ?? ''), ...costs.map(({ path }) => path), ...skip.prefixes]
}

function namedMethods({ rules, costs, skip }: Config): ReadonlySet<string> {
  const named = new Set<string>(skip.extensions.length > 0 ? ['GET'] : [])
  for (const { match } of rules) for (const method of match.methods ?? []) named.add(method)
  for (const { method } of costs) if (method !== null) named.add(method)
  // A rule for GET also applies to HEAD.
  if (named.has('GET')) named.add('HEAD')
  return named
}
