/** Finds the level of a check that names its policy or tier. */
import type { ActiveOverride } from './active-override.js'
import type { ActivePolicies } from './active-policies.js'
import type { PolicyOrTier } from './config.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import { type DeclaredLevel, Level } from './level.js'
import { targetKey } from './override.js'

/** The scope of a budget for all routes. */
export const GLOBAL = 'global'
const AS_ASKED = ofCaller('asked')

export function ofCaller(rule: string): DeclaredLevel {
  return { level: 'caller', rule, scope: GLOBAL, per: 'caller', subjectTypes: null }
}

/** Returns the single level of a check that names its policy or tier. */
export function askedLevel(
  active: ActivePolicies,
  asked: {
    readonly subject: string
    readonly charge: PolicyOrTier
    readonly scope: string
    /** Set: the subject pays for others, and has that many times the limits. */
    readonly times?: number | undefined
  },
  nowUs: number,
): Level {
  const { subject, charge, scope, times } = asked
  const found = findOverride(active, [subject], nowUs)
  // An override to another tier does not apply to a check that names a policy.
  const holds = found !== null && (charge.tier !== undefined || 'limits' in found.override)
  const declared = scope === GLOBAL ? AS_ASKED : { ...AS_ASKED, scope }
  const named = policyNamed(active, charge, null)
  if (times !== undefined) return makeLevel(active, declared, named.times(times), [])
  return makeLevel(active, declared, named, inPolicy(active, named, [subject], holds ? [found] : [], nowUs))
}

/** Adds the overrides of the policy: everybody's comes first, the caller's own last. */
export function inPolicy(
  { overrides }: ActivePolicies,
  { unscaled }: ConfiguredPolicy,
  subjects: readonly string[],
  others: readonly ActiveOverride[],
  nowUs: number,
): readonly ActiveOverride[] {
  if (overrides.size === 0 || unscaled.tier !== null) return others
  const policy = unscaled.name
  const own = subjects.map(subject => overrides.find(targetKey({ subject, policy }), nowUs))
  const found = [
    overrides.find(targetKey({ policy }), nowUs),
    ...others,
    own.find(one => one !== null) ?? null,
  ]
  return found.filter(one => one !== null)
}

/** The level of a policy with these overrides applied. */
export function makeLevel(
  active: ActivePolicies,
  declared: DeclaredLevel,
  base: ConfiguredPolicy,
  overrides: readonly ActiveOverride[],
): Level {
  const configured = overrides.reduce((policy, override) => override.replace(policy, active), base)
  return new Level(active.config, declared, configured, overrides.at(-1) ?? null)
}

/** The caller's own tier takes precedence over the tier for callers without one. */
export function policyNamed(
  active: ActivePolicies,
  charge: PolicyOrTier,
  tierOfCaller: string | null,
): ConfiguredPolicy {
  const { configuredTiers, configuredPolicies } = active
  if (tierOfCaller !== null) return configuredTiers.get(tierOfCaller) as ConfiguredPolicy
  const configured =
    charge.policy === undefined ? configuredTiers.get(charge.tier) : configuredPolicies.get(charge.policy)
  return configured as ConfiguredPolicy
}

export function findOverride(
  { overrides }: ActivePolicies,
  subjects: readonly string[],
  nowUs: number,
): ActiveOverride | null {
  if (overrides.size === 0) return null
  for (const subject of subjects) {
    const found = overrides.find(targetKey({ subject }), nowUs)
    if (found !== null) return found
  }
  return null
}
