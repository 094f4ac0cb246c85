import { replaceUnits } from './change-numbers.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import type { Override } from './override.js'
import { type Policy, type PolicyLimit, parseTier } from './policies.js'
import { overlayTier, SPANS_US, type TierOptions, tierLimits } from './tiers.js'

/** The overrides in force, by their target. */
export interface ActiveOverrides {
  readonly size: number
  /** Returns the unexpired override of a target (`targetKey`), or null. */
  find(target: string, nowUs: number): ActiveOverride | null
}

/** An override in the form that is applied to policies. */
export class ActiveOverride {
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
    const { unscaled } = configured
    const made = configured.with(
      'numbers' in override ? withNumbers(unscaled, override.numbers) : withUnits(unscaled, override.limits),
    )
    this.replaced.set(configured, made)
    return made
  }
}

/**
 * A tier with some of its numbers replaced. Another policy keeps its algorithms, and what was used: the limits with the
 * span of a number take it, and a span without a limit gets one.
 */
function withNumbers(policy: Policy, numbers: TierOptions): Policy {
  if (policy.numbers !== undefined && policy.tier !== null) {
    return parseTier(policy.tier, overlayTier(policy.numbers, numbers))
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
