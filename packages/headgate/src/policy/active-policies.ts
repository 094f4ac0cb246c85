/**
 * The policies and tiers in force: as they were written, scaled by the fleet's multiplier, with the overrides. When a switch
 * changes, a new one replaces the old one as a whole, so that no request sees half a change.
 */
import type { FailureMode } from '../check/check.js'
import type { ActiveOverrides } from './active-override.js'
import type { Config } from './config.js'
import { ConfiguredPolicy } from './configured-policy.js'
import type { Control } from './control.js'
import type { Policy, TierLimits } from './policies.js'

/** What is written about policies, in code or in a file. */
export interface WrittenPolicies {
  readonly config: Pick<
    Config,
    'policies' | 'levels' | 'mode' | 'enforcePercent' | 'onStoreFailure' | 'headers'
  >
  /** As written, before any multiplier. */
  readonly policies: ReadonlyMap<string, Policy>
  readonly tiers: ReadonlyMap<string, Policy>
  /** What makes limits of other numbers for a tier; null if there are none. */
  readonly tierLimits: TierLimits | null
}

/** The settings that change at run time. */
export interface AtRunTime {
  readonly control: Control
  readonly overrides: ActiveOverrides
  /** The failure mode if neither the rule, nor the policy, nor the file names one. */
  readonly defaultFailure: FailureMode
}

export interface ActivePolicies extends WrittenPolicies, AtRunTime {
  readonly configuredPolicies: ReadonlyMap<string, ConfiguredPolicy>
  readonly configuredTiers: ReadonlyMap<string, ConfiguredPolicy>
}

/** Combines what is written with the settings that change at run time. Cheap: limits are scaled on first use. */
export function activatePolicies<Written extends WrittenPolicies>(
  written: Written,
  { control, overrides, defaultFailure }: AtRunTime,
): Written & ActivePolicies {
  const factor = control.multiplier
  const settingsOf = (name: string) => written.config.policies[name] ?? NO_SETTINGS
  return {
    ...written,
    control,
    overrides,
    defaultFailure,
    configuredPolicies: configure(written.policies, policy => settingsOf(policy.name), factor),
    configuredTiers: configure(written.tiers, () => NO_SETTINGS, factor),
  }
}

const NO_SETTINGS = {}

function configure(
  policies: ReadonlyMap<string, Policy>,
  settingsOf: (policy: Policy) => ConfiguredPolicy['settings'],
  factor: number,
): ReadonlyMap<string, ConfiguredPolicy> {
  const configured = new Map<string, ConfiguredPolicy>()
  for (const [name, policy] of policies) {
    configured.set(name, new ConfiguredPolicy(policy, settingsOf(policy), factor))
  }
  return configured
}
