import { replaceUnits } from './change-numbers.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import type { Override } from './override.js'
import { type Policy, parseTier } from './policies.js'

/** The overrides of the moment, by their target. */
export interface ActiveOverrides {
  readonly size: number
  /** The one for a target (`targetKey`) that has not ended, or null. */
  find(target: string, nowUs: number): ActiveOverride | null
}

/** An override ready to take the place of what the file says. */
export class ActiveOverride {
  /** For numbers of its own: the tier they make. */
  private tier: Policy | null = null
  /** The policies it was applied to, with the result: for a busy subject that work must not be done for every request. */
  private readonly replaced = new WeakMap<ConfiguredPolicy, ConfiguredPolicy>()

  constructor(readonly override: Override) {}

  /** The policy as this override has it. Tiers that the file has lost, and ids it does not have, change nothing. */
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
