/**
 * Everything that currently decides which limits apply: the policy file, the control switches and the overrides.
 * When one of them changes, a new one replaces the old one as a whole, so that no request sees half a change.
 * Building it is cheap, because the expensive part was compiled with the file.
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
  /** The failure mode if neither the rule, nor the policy, nor the file names one. */
  readonly defaultFailure: FailureMode
  /** Levels without overrides, built on first use. */
  readonly levels: LevelCache
}

/**
 * Levels by the rule or part of the file they come from, then by the caller's tier, whose limits may be the ones
 * charged.
 */
export type LevelCache = Map<object, Map<string | null, Level>>

/** The settings that change at run time, beside the policy file. */
export interface AtRunTime {
  readonly control: Control
  readonly overrides: ActiveOverrides
  readonly defaultFailure: FailureMode
}

/** Combines a compiled policy file with the settings that change at run time. */
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
