/** Everything that decides which limits a request meets: the policy file, the switches and the overrides. */
import { type ActivePolicies, type AtRunTime, activatePolicies } from './active-policies.js'
import type { CompiledConfig } from './compiled-config.js'
import type { Level } from './level.js'

export interface ActiveConfig extends CompiledConfig, ActivePolicies {
  readonly config: CompiledConfig['config']
  /** Levels without overrides, built on first use. */
  readonly levels: LevelCache
}

/**
 * Levels by the rule or part of the file they come from, then by the caller's tier, whose limits may be the ones
 * charged.
 */
export type LevelCache = Map<object, Map<string | null, Level>>

/** Combines a compiled policy file with the settings that change at run time. */
export function activateConfig(compiled: CompiledConfig, atRunTime: AtRunTime): ActiveConfig {
  return { ...activatePolicies(compiled, atRunTime), levels: new Map() }
}
