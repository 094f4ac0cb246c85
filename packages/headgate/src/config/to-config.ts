import {
  type AlsoConfig,
  type Config,
  type Enforcement,
  type GlobalConfig,
  type MatchConfig,
  type PolicyConfig,
  type PolicyOrTier,
  type RouteConfig,
  RULES,
  type RuleConfig,
} from '../policy/config.js'
import { DEFAULT_IPV6_NETWORKS } from '../policy/ipv6-budgets.js'
import { rules } from '../policy/rules.js'
import { defaultTiers } from '../policy/tiers.js'
import { foldType } from '../subject/subject.js'
import { parseCostKey } from './file/path-pattern.js'
import type { ReadPolicy } from './file/policy.js'
import type { ReadFile } from './file/policy-file.js'
import type { ReadAlso, ReadCharge, ReadRule } from './file/rule.js'
import type { ReadRoute } from './file/upstream.js'
import { ruleName } from './rule-match.js'
import { type ReadList, sound } from './shape/lists.js'

/** The default tier, if the file does not name another. */
export const ANONYMOUS = 'anonymous'

/** Converts a valid file to a configuration, filling in defaults. */
export function toConfig(file: ReadFile): Config {
  return {
    ...(file.prefix !== undefined && { prefix: file.prefix }),
    ...(file.tenant !== undefined && { tenant: file.tenant }),
    ...(file.service !== undefined && { service: file.service }),
    tiers: Object.fromEntries(file.tiers ?? Object.entries(defaultTiers)),
    policies: Object.fromEntries(
      [...(file.policies ?? [])].map(([name, policy]) => [name, toPolicy(policy)]),
    ),
    levels: file.levels ?? 'most-specific',
    mode: file.mode ?? 'enforce',
    enforcePercent: file.enforce ?? 100,
    default: toPolicyOrTier(file.default ?? {}) ?? { tier: ANONYMOUS },
    global: file.global === undefined ? null : toGlobal(file.global),
    rules: sound(file.rules).map(toRule),
    identify: file.identify === undefined ? null : sound(file.identify),
    subjects: new Map(
      [...(file.subjects ?? [])].map(([subject, charge]) => [
        subject,
        toPolicyOrTier(charge) ?? { tier: ANONYMOUS },
      ]),
    ),
    secretTypes: sound(file.secretTypes),
    masks: file.masks ?? { byType: {}, others: 'part' },
    ipv6Networks: file.ipv6Networks ?? DEFAULT_IPV6_NETWORKS,
    costs: [...(file.costs ?? [])].map(([key, cost]) => ({ ...parseCostKey(key), cost })),
    skip: { prefixes: sound(file.skip?.prefixes), extensions: sound(file.skip?.extensions) },
    trustedProxies: file.trustedProxies ?? [],
    forwardedHeader: file.forwardedHeader ?? 'x-forwarded-for',
    ...pick(file, 'onStoreFailure'),
    ...pick(file, 'headers'),
    cors: file.cors ?? null,
    upstream: file.upstream ?? null,
    routes: sound(file.routes).flatMap(toRoute),
    [RULES]: rules,
  }
}

function toRoute({ match, upstream }: ReadRoute): RouteConfig[] {
  if (upstream === undefined) return []
  const hosts = match?.host === undefined ? null : sound(match.host)
  return [{ hosts, path: match?.path ?? null, upstream }]
}

function toPolicy(policy: ReadPolicy): PolicyConfig {
  return {
    limits: sound(policy.limits),
    ...(policy.candidate !== undefined && { candidate: sound(policy.candidate) }),
    ...toEnforcement(policy),
    ...pick(policy, 'onStoreFailure'),
    ...pick(policy, 'lease'),
  }
}

function toGlobal({ policy = '', ...enforced }: NonNullable<ReadFile['global']>): GlobalConfig {
  return { policy, ...toEnforcement(enforced) }
}

function toRule(rule: ReadRule): RuleConfig {
  return {
    name: ruleName(rule),
    match: toMatch(rule.match ?? {}),
    charge: toPolicyOrTier(rule),
    per: rule.per ?? 'caller',
    scope: rule.scope ?? 'global',
    ...pick(rule, 'cost'),
    ...(rule.also !== undefined && { also: sound(rule.also).map(toAlso) }),
    ...(rule.refundIf !== undefined && { refundIf: rule.refundIf }),
    ...toEnforcement(rule),
    ...pick(rule, 'onStoreFailure'),
    ...pick(rule, 'headers'),
    ...pick(rule, 'priority'),
  }
}

function toAlso({ subject = '', policy = '' }: ReadAlso): AlsoConfig {
  return { subject: foldType(subject), policy }
}

function toMatch({ method, path, subject, tier, scope }: NonNullable<ReadRule['match']>): MatchConfig {
  const all = (list: ReadList<string> | undefined) => (list === undefined ? null : sound(list))
  return {
    methods: all(method),
    path: path ?? null,
    subjects: all(subject)?.map(foldType) ?? null,
    tiers: all(tier),
    scopes: all(scope),
  }
}

function toPolicyOrTier({ tier, policy }: ReadCharge): PolicyOrTier | null {
  if (tier !== undefined) return { tier }
  return policy === undefined ? null : { policy }
}

function toEnforcement({ mode, enforce }: Pick<ReadRule, 'mode' | 'enforce'>): Enforcement {
  return { ...(mode !== undefined && { mode }), ...(enforce !== undefined && { enforcePercent: enforce }) }
}

/** Returns an object with just this field, or without it if it is undefined. */
function pick<T extends object, const Key extends keyof T>(
  value: T,
  key: Key,
): { [K in Key]?: Exclude<T[K], undefined> } {
  return value[key] === undefined ? {} : ({ [key]: value[key] } as { [K in Key]?: Exclude<T[K], undefined> })
}
