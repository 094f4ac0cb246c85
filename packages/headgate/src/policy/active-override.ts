import type { ActivePolicies } from './active-policies.js'
import { replaceUnits } from './change-numbers.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import type { Override } from './override.js'
import { type Policy, type PolicyLimit, parseTier, type TierLimits } from './policies.js'
import { overlayTier, SPANS_US, type TierOptions } from './tier-numbers.js'

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
        ? withNumbers(unscaled, override.numbers, tierLimits)
        : withUnits(unscaled, override.limits),
    )
    this.replaced.set(configured, made)
    return made
  }
}

/**
 * A tier with some of its numbers replaced. Another policy keeps its algorithms, and what was used: the limits with the
 * span of a number take it, and a span without a limit gets one.
 */
function withNumbers(policy: Policy, numbers: TierOptions, tierLimits: TierLimits | null): Policy {
  if (tierLimits === null) return policy
  if (policy.numbers !== undefined && policy.tier !== null) {
    const replaced = overlayTier(policy.numbers, numbers)
    return parseTier(policy.tier, replaced, tierLimits(replaced))
  }
  const { burst: _burst, priority: _priority, ...spans } = numbers
  const missing = { ...spans }
  const kept = policy.limits.flatMap((named): PolicyLimit[] => {
    const span = spanOf(named)
    const units = span === null ? undefined : spans[span]
    if (span === null || units === undefined) return [named]
    delete missing[span]
    return units === 'unlimited' ? [] : [{ ...named, limit: replaceUnits(named.limit, units) }]
  })
  const added = tierLimits(missing).map(limit => ({ name: `${policy.name}.${limit.id}`, limit }))
  return { ...policy, limits: [...kept, ...added] }
}

function spanOf({ limit: { quota } }: PolicyLimit): keyof typeof SPANS_US | null {
  if (quota.unit !== undefined) return null
  const found = Object.entries(SPANS_US).find(([, us]) => us === quota.windowUs)
  return found === undefined ? null : (found[0] as keyof typeof SPANS_US)
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
