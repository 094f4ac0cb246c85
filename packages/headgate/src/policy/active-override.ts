import type { ActivePolicies } from './active-policies.js'
import { replaceUnits } from './change-numbers.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import type { Override } from './override.js'
import type { Policy } from './policies.js'

/** The overrides in force, by their target. */
export interface ActiveOverrides {
  readonly size: number
  /** Returns the unexpired override of a target (`targetKey`), or null. */
  find(target: string, nowUs: number): ActiveOverride | null
  /** Returns how long the override of a target still lasts; 0 if there is none. */
  leftUs(target: string, nowUs: number): number
}

/** An override in the form that is applied to policies. */
export class ActiveOverride {
  /** Results by policy, so that the work is not repeated for every request of a busy subject. */
  private readonly replaced = new WeakMap<ConfiguredPolicy, ConfiguredPolicy>()

  constructor(readonly override: Override) {}

  /**
   * Returns the policy with this override applied. Tiers and limit ids that the file no longer has change nothing.
   */
  replace(
    configured: ConfiguredPolicy,
    { configuredTiers, tierLimits }: Pick<ActivePolicies, 'configuredTiers' | 'tierLimits'>,
  ): ConfiguredPolicy {
    const { override } = this
    if ('tier' in override) return configuredTiers.get(override.tier) ?? configured
    if ('ban' in override) return configured
    const known = this.replaced.get(configured)
    if (known !== undefined) return known
    const { unscaled } = configured
    const made = configured.with(
      'numbers' in override
        ? (tierLimits?.replace(unscaled, override.numbers) ?? unscaled)
        : withUnits(unscaled, override.limits),
    )
    this.replaced.set(configured, made)
    return made
  }
}

function withUnits(policy: Policy, units: Readonly<Record<string, number>>): Policy {
  return {
    ...policy,
    limits: policy.limits.map(named => {
      const replaced = Object.hasOwn(units, named.limit.id) ? units[named.limit.id] : undefined
      return replaced === undefined ? named : { ...named, limit: replaceUnits(named.limit, replaced) }
    }),
  }
}
