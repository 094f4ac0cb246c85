/**
 * Everything that decides which limits apply, ready to be looked up: the policy file with its patterns compiled, every
 * limit scaled by the fleet's multiplier, and the overrides of the moment. Built anew when one of the three changes and
 * put in the place of the old one as a whole, so that no request sees half a change.
 */
import type { Limit } from '../engine/limit.js'
import { replaceUnits, scaleLimit } from './change-numbers.js'
import type { Config, PolicyConfig, RuleConfig } from './config.js'
import type { Control } from './control.js'
import { type LeaseOptions, leaseChangedLimits } from './leases.js'
import type { Override } from './override.js'
import { targetKey } from './override.js'
import { compilePattern, type PathPattern } from './path-pattern.js'
import { type NamedLimit, type Policy, parsePolicies, parseTiers } from './policies.js'

export interface InForce {
  readonly config: Config
  readonly control: Control
  readonly policies: ReadonlyMap<string, ConfiguredPolicy>
  readonly tiers: ReadonlyMap<string, ConfiguredPolicy>
  readonly routeRules: readonly CompiledRule[]
  readonly callerRules: readonly CompiledRule[]
  readonly costs: readonly {
    readonly method: string | null
    readonly pattern: PathPattern
    readonly cost: number
  }[]
  readonly skippedPrefixes: readonly PathPattern[]
  readonly subjects: Config['subjects']
  readonly overrides: ReadonlyMap<string, CompiledOverride>
}

/** A policy and what the file says about enforcing it. */
export interface ConfiguredPolicy {
  /** As the fleet's multiplier has it. */
  readonly policy: Policy
  /** As the file has it. */
  readonly unscaled: Policy
  readonly settings: Omit<PolicyConfig, 'limits' | 'candidate'>
  /** The limits of its candidate, under names of their own. */
  readonly candidate: readonly NamedLimit[]
}

export interface CompiledRule {
  readonly rule: RuleConfig
  readonly pattern: PathPattern | null
}

export interface CompiledOverride {
  readonly override: Override
  /** Reading of the process's clock at which it has ended. */
  readonly endsAtUs: number
  /** For numbers of its own: the tier they make. */
  readonly policy: ConfiguredPolicy | null
}

/** An override and when it ends, on the clock of this process. */
export interface TimedOverride {
  readonly override: Override
  readonly endsAtUs: number
}

/** Puts the three together. `nameSubject` turns the subjects of the file into what requests are known by. */
export function putInForce(
  config: Config,
  control: Control,
  overrides: readonly TimedOverride[],
  nameSubject: (subject: string) => string,
): InForce {
  const factor = control.multiplier
  const rules = config.rules.map(rule => ({
    rule,
    pattern: rule.match.path === null ? null : compilePattern(rule.match.path),
  }))
  return {
    config,
    control,
    policies: configuredPolicies(config, factor),
    tiers: mapValues(parseTiers(config.tiers), tier => plain(tier, factor)),
    routeRules: rules.filter(({ rule }) => isRouteRule(rule)),
    callerRules: rules.filter(({ rule }) => !isRouteRule(rule)),
    costs: config.costs.map(({ method, path, cost }) => ({ method, pattern: compilePattern(path), cost })),
    skippedPrefixes: config.skip.prefixes.map(prefix => ({ ...compilePattern(prefix), open: true })),
    subjects: new Map([...config.subjects].map(([subject, charge]) => [nameSubject(subject), charge])),
    overrides: new Map(overrides.map(timed => [targetKey(timed.override), compileOverride(timed, factor)])),
  }
}

/** A rule that looks at the request itself, not only at who sent it. */
export function isRouteRule({ match }: RuleConfig): boolean {
  return match.path !== null || match.methods !== null
}

/** The policy with other numbers for the limits that are named; ids it does not have change nothing. */
export function withReplacedUnits(
  configured: ConfiguredPolicy,
  units: Readonly<Record<string, number>>,
  factor: number,
): ConfiguredPolicy {
  const limits = configured.unscaled.limits.map(named => {
    const replaced = Object.hasOwn(units, named.limit.id) ? units[named.limit.id] : undefined
    return replaced === undefined ? named : { ...named, limit: replaceUnits(named.limit, replaced) }
  })
  return {
    ...configured,
    policy: scaled({ ...configured.unscaled, limits }, factor, configured.settings.lease),
  }
}

function configuredPolicies(config: Config, factor: number): ReadonlyMap<string, ConfiguredPolicy> {
  const limits = mapRecord(config.policies, policy => policy.limits)
  return mapValues(parsePolicies(limits), policy => {
    const { limits: _limits, candidate = [], ...settings } = config.policies[policy.name] as PolicyConfig
    const named = candidate.map(limit => ({
      // No policy can have a plus in its name: a candidate never meets a live limit's state.
      name: `${policy.name}+candidate.${limit.id}`,
      limit: scaleLimit(limit, factor),
    }))
    return { policy: scaled(policy, factor, settings.lease), unscaled: policy, settings, candidate: named }
  })
}

function compileOverride({ override, endsAtUs }: TimedOverride, factor: number): CompiledOverride {
  const tier = 'numbers' in override ? parseTiers({ override: override.numbers }).get('override') : undefined
  return { override, endsAtUs, policy: tier === undefined ? null : plain(tier, factor) }
}

function plain(tier: Policy, factor: number): ConfiguredPolicy {
  return { policy: scaled(tier, factor), unscaled: tier, settings: {}, candidate: [] }
}

/** With a multiplier of 0 nothing is asked at all, so there is nothing to scale. Leases are of the numbers in force. */
function scaled(policy: Policy, factor: number, lease?: LeaseOptions): Policy {
  if (factor === 0 || (factor === 1 && lease === undefined)) return policy
  const changed = policy.limits.map(({ limit }) => scaleLimit(limit, factor))
  const limits = leaseChangedLimits(changed, lease)
  return {
    ...policy,
    limits: policy.limits.map(({ name }, index) => ({ name, limit: limits[index] as Limit })),
  }
}

function mapValues<From, To>(
  map: ReadonlyMap<string, From>,
  change: (value: From) => To,
): ReadonlyMap<string, To> {
  return new Map([...map].map(([key, value]) => [key, change(value)]))
}

function mapRecord<From, To>(
  record: Readonly<Record<string, From>>,
  change: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
}
