import { defineConfig } from '../../src/config.js'
import type { Config, RuleConfig } from '../../src/policy/config.js'
import { slidingWindowLog } from '../../src/policy/limits.js'

/** A checked policy file of nothing but defaults, with what a test is about in its place. */
export function configOf(changes: Partial<Config> = {}): Config {
  return { ...defineConfig({}), ...changes }
}

export function ruleOf({
  match = {},
  ...changes
}: Partial<Omit<RuleConfig, 'match'>> & { match?: Partial<RuleConfig['match']> }): RuleConfig {
  return {
    name: 'rule',
    charge: null,
    per: 'caller',
    scope: 'global',
    ...changes,
    match: { methods: null, path: null, subjects: null, tiers: null, scopes: null, ...match },
  }
}

/** A policy of one log, which counts plainly: so many in a minute. */
export function perMinute(limit: number) {
  return { limits: [slidingWindowLog({ limit, window: '1m' })] }
}
