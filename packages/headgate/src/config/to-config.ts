import type {
  Charge,
  Config,
  Enforcement,
  GlobalConfig,
  MatchConfig,
  PolicyConfig,
  RuleConfig,
} from '../policy/config.js'
import { defaultTiers } from '../policy/tiers.js'
import { parseCostKey } from './file/path-pattern.js'
import type { ReadPolicy } from './file/policy.js'
import type { ReadFile } from './file/policy-file.js'
import type { ReadCharge, ReadRule } from './file/rule.js'
import { ruleName } from './rule-match.js'
import { type ReadList, sound } from './shape/lists.js'

/** The tier of callers about whom nothing is said, if the file does not name another. */
export const ANONYMOUS = 'anonymous'

/** The configuration a sound file stands for: what it leaves out is filled in. */
export function toConfig(file: ReadFile): Config {
  return {
    ...(file.prefix !== undefined && { prefix: file.prefix }),
    ...(file.tenant !== undefined && { tenant: file.tenant }),
    tiers: Object.fromEntries(file.tiers ?? Object.entries(defaultTiers)),
    policies: Object.fromEntries(
      [...(file.policies ?? [])].map(([name, policy]) => [name, toPolicy(policy)]),
    ),
    levels: file.levels ?? 'most-specific',
    mode: file.mode ?? 'enforce',
    enforcePercent: file.enforce ?? 100,
    default: toCharge(file.default ?? {}) ?? { tier: ANONYMOUS },
    global: file.global === undefined ? null : toGlobal(file.global),
    rules: sound(file.rules).map(toRule),
    subjects: new Map(
      [...(file.subjects ?? [])].map(([subject, charge]) => [
        subject,
        toCharge(charge) ?? { tier: ANONYMOUS },
      ]),
    ),
    costs: [...(file.costs ?? [])].map(([key, cost]) => ({ ...parseCostKey(key), cost })),
    skip: { prefixes: sound(file.skip?.prefixes), extensions: sound(file.skip?.extensions) },
    trustedProxies: sound(file.trustedProxies),
    ...pick(file, 'onStoreFailure'),
    ...pick(file, 'headers'),
    upstream: file.upstream ?? null,
  }
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
    charge: toCharge(rule),
    per: rule.per ?? 'caller',
    scope: rule.scope ?? 'global',
    ...pick(rule, 'cost'),
    ...toEnforcement(rule),
    ...pick(rule, 'onStoreFailure'),
    ...pick(rule, 'headers'),
  }
}

function toMatch({ method, path, subject, tier, scope }: NonNullable<ReadRule['match']>): MatchConfig {
  const all = (list: ReadList<string> | undefined) => (list === undefined ? null : sound(list))
  return {
    methods: all(method),
    path: path ?? null,
    subjects: all(subject),
    tiers: all(tier),
    scopes: all(scope),
  }
}

function toCharge({ tier, policy }: ReadCharge): Charge | null {
  if (tier !== undefined) return { tier }
  return policy === undefined ? null : { policy }
}

function toEnforcement({ mode, enforce }: Pick<ReadRule, 'mode' | 'enforce'>): Enforcement {
  return { ...(mode !== undefined && { mode }), ...(enforce !== undefined && { enforcePercent: enforce }) }
}

/** A field alone, or nothing: what was left out has no key. */
function pick<T extends object, const Key extends keyof T>(
  value: T,
  key: Key,
): { [K in Key]?: Exclude<T[K], undefined> } {
  return value[key] === undefined ? {} : ({ [key]: value[key] } as { [K in Key]?: Exclude<T[K], undefined> })
}
