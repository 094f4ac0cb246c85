import { replaceUnits } from './change-numbers.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import type { Override } from './override.js'
import { type Policy, parseTier } from './policies.js'

/** The overrides in force, by their target. */
export interface ActiveOverrides {
  readonly size: number
  /** Returns the unexpired override of a target (`targetKey`), or null. */
  find(target: string, nowUs: number): ActiveOverride | null
}

/** An override in the form that is applied to policies. */
export class ActiveOverride {
  /** For an override with its own numbers: the tier made of them. */
  private tier: Policy | null = null
  /** Results by policy, so that the work is not repeated for every request of a busy subject. */
  private readonly replaced = new WeakMap<ConfiguredPolicy, ConfiguredPolicy>()

  constructor(readonly override: Override) {}

  /**
   * Returns the policy with this override applied. Tiers and limit ids that the file no longer has change nothing.
   */
  replace(configured: ConfiguredPolicy, tiers: ReadonlyMap<string, ConfiguredPolicy>): ConfiguredPolicy {
    const { override } = this
    if ('tier' in override) return tiers.get(override.tier) ?? configured
    const known = this.replaced.get(configured)
    if (known !== undefined) return known
    if ('numbers' in override) this.tier ??= parseTier('override', override.numbers)
    const made = configured.with(this.tier ?? withUnits(configured.unscaled, override))
    this.replaced.set(configured, made)
    return made
  }
}

function withUnits(policy: Policy, override: Override): Policy {
  const units = 'limits' in override ? override.limits : {}
  return {
    ...policy,
    limits: policy.limits.map(named => {
      const replaced = Object.hasOwn(units, named.limit.id) ? units[named.limit.id] : undefined
      return replaced === undefined ? named : { ...named, limit: replaceUnits(named.limit, replaced) }
    }),
  }
}
