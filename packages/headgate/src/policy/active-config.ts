/**
 * Everything that decides which limits apply at the moment: the policy file, the fleet's switches and the overrides.
 * Made anew when one of the three changes and put in the place of the old one as a whole, so that no request sees half a
 * change. Making it is cheap: what takes long was compiled with the file.
 */

import type { FailureMode } from '../engine/question.js'
import type { ActiveOverrides } from './active-override.js'
import type { CompiledConfig } from './compiled-config.js'
import { ConfiguredPolicy } from './configured-policy.js'
import type { Control } from './control.js'
import type { Level } from './level.js'
import type { Policy } from './policies.js'

export interface ActiveConfig extends CompiledConfig {
  readonly control: Control
  readonly configuredPolicies: ReadonlyMap<string, ConfiguredPolicy>
  readonly configuredTiers: ReadonlyMap<string, ConfiguredPolicy>
  readonly overrides: ActiveOverrides
  /** The failure mode where neither rule, policy nor file names one. */
  readonly defaultFailure: FailureMode
  /** Levels without overrides, made when they are first needed. */
  readonly levels: LevelCache
}

/** Levels by what speaks: a rule, or a part of the file. Then by the caller's tier, which may be what is charged. */
export type LevelCache = Map<object, Map<string | null, Level>>

export interface AtRunTime {
  readonly control: Control
  readonly overrides: ActiveOverrides
  readonly defaultFailure: FailureMode
}

export function activateConfig(
  compiled: CompiledConfig,
  { control, overrides, defaultFailure }: AtRunTime,
): ActiveConfig {
  const factor = control.multiplier
  const settingsOf = (name: string) => compiled.config.policies[name] ?? NO_SETTINGS
  return {
    ...compiled,
    control,
    overrides,
    defaultFailure,
    configuredPolicies: configure(compiled.policies, policy => settingsOf(policy.name), factor),
    configuredTiers: configure(compiled.tiers, () => NO_SETTINGS, factor),
    levels: new Map(),
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
