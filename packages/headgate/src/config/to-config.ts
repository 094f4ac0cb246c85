import {
  type Config,
  type Enforcement,
  type MatchConfig,
  type PolicyConfig,
  type PolicyOrTier,
  RULES,
  type RuleConfig,
} from '../policy/config.js'
import { DEFAULT_IPV6_NETWORKS } from '../policy/ipv6-budgets.js'
import { rules } from '../policy/rules.js'
import { DEFAULT_TIERS } from '../policy/tier-numbers.js'
import { foldType } from '../subject/subject.js'
import type { route } from './file/gateway.js'
import { parseCostKey } from './file/path-pattern.js'
import type { ReadPolicy } from './file/policy.js'
import type { ReadFile } from './file/policy-file.js'
import type { ReadRule } from './file/rule.js'
import type { ReadAs } from './shape/shape.js'

/** The default tier, if the file does not name another. */
export const ANONYMOUS = 'anonymous'

/** Converts a file without mistakes to a configuration, filling in defaults. */
export function toConfig(file: ReadFile): Config {
  // Without mistakes, nothing that is required is missing.
  const wholeRules = (file.rules ?? []) as readonly ReadRule[]
  const wholeRoutes = (file.routes ?? []) as readonly ReadAs<typeof route>[]
  return {
    ...pick(file, 'prefix', 'tenant', 'service'),
    tiers: Object.fromEntries(file.tiers ?? Object.entries(DEFAULT_TIERS)),
    policies: Object.fromEntries(
      [...(file.policies ?? [])].map(([name, policy]) => [name, toPolicy(policy)]),
    ),
    levels: file.levels ?? 'most-specific',
    mode: file.mode ?? 'enforce',
    enforcePercent: file.enforce ?? 100,
    default: toPolicyOrTier(file.default ?? {}) ?? { tier: ANONYMOUS },
    global: file.global === undefined ? null : { policy: file.global.policy, ...toEnforcement(file.global) },
    rules: wholeRules.map(toRule),
    identify: file.identify ?? null,
    subjects: new Map(
      [...(file.subjects ?? [])].map(([subject, charge]) => [
        subject,
        toPolicyOrTier(charge) ?? { tier: ANONYMOUS },
      ]),
    ),
    secretTypes: file.secretTypes ?? [],
    masks: file.masks ?? { byType: {}, others: 'part' },
    ipv6Networks: file.ipv6Networks ?? DEFAULT_IPV6_NETWORKS,
    costs: [...(file.costs ?? [])].map(([key, cost]) => ({ ...parseCostKey(key), cost })),
    skip: { prefixes: [], extensions: [], ...file.skip },
    trustedProxies: file.trustedProxies ?? [],
    forwardedHeader: file.forwardedHeader ?? 'x-forwarded-for',
    ...pick(file, 'onStoreFailure', 'headers'),
    cors: file.cors ?? null,
    upstream: file.upstream ?? null,
    routes: wholeRoutes.map(({ match, upstream }) => ({
      hosts: match.host ?? null,
      path: match.path ?? null,
      upstream,
    })),
    [RULES]: rules,
  }
}

function toPolicy(policy: ReadPolicy): PolicyConfig {
  return {
    limits: policy.limits,
    ...pick(policy, 'ban', 'candidate'),
    ...toEnforcement(policy),
    ...pick(policy, 'onStoreFailure', 'lease'),
  }
}

function toRule(rule: ReadRule): RuleConfig {
  return {
    name: ruleName(rule),
    match: toMatch(rule.match),
    charge: toPolicyOrTier(rule),
    per: typeof rule.per === 'object' ? rule.per.map(foldType) : (rule.per ?? 'caller'),
    scope: rule.scope ?? 'global',
    ...pick(rule, 'cost'),
    ...(rule.also !== undefined && {
      also: rule.also.map(({ subject, policy }) => ({ subject: foldType(subject), policy })),
    }),
    ...pick(rule, 'refundIf', 'resetIf', 'tokens', 'wait'),
    ...toEnforcement(rule),
    ...pick(rule, 'onStoreFailure', 'headers', 'priority'),
  }
}

/** Returns a rule's name, or else its conditions in one line. */
export function ruleName({ name, match }: ReadRule): string {
  if (name !== undefined) return name
  const methods = match.method === undefined ? [] : [match.method.join('|')]
  const path = match.path === undefined ? [] : [match.path]
  const others = (['subject', 'tier', 'scope'] as const).flatMap(field =>
    match[field] === undefined ? [] : [`${field}:${match[field].join('|')}`],
  )
  return [...methods, ...path, ...others].join(' ')
}

/** Converts the conditions of a rule. */
export function toMatch({ method, path, subject, tier, scope }: ReadRule['match']): MatchConfig {
  return {
    methods: method ?? null,
    path: path ?? null,
    subjects: subject?.map(foldType) ?? null,
    tiers: tier ?? null,
    scopes: scope ?? null,
  }
}

function toPolicyOrTier({ tier, policy }: NonNullable<ReadFile['default']>): PolicyOrTier | null {
  if (tier !== undefined) return { tier }
  return policy === undefined ? null : { policy }
}

function toEnforcement({ mode, enforce }: Pick<ReadRule, 'mode' | 'enforce'>): Enforcement {
  return { ...(mode !== undefined && { mode }), ...(enforce !== undefined && { enforcePercent: enforce }) }
}

/** Returns an object with just those of these fields that are not undefined. */
function pick<T extends object, const Key extends keyof T>(
  value: T,
  ...keys: readonly Key[]
): { [K in Key]?: Exclude<T[K], undefined> } {
  const entries = keys.filter(key => value[key] !== undefined).map(key => [key, value[key]] as const)
  return Object.fromEntries(entries) as { [K in Key]?: Exclude<T[K], undefined> }
}
