import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { defineConfig } from '../../src/config.js'
import { ActiveOverride, type ActiveOverrides } from '../../src/policy/active-override.js'
import type { Config, RuleConfig } from '../../src/policy/config.js'
import { type Override, targetKey } from '../../src/policy/override.js'

/** Returns a valid policy file with all defaults, except for `changes`. */
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

/** Returns a policy of one log: so many in a minute. */
export function perMinute(limit: number) {
  return { limits: [slidingWindowLog({ limit, window: '1m' })] }
}

/** An override and when it ends, on the clock of this process. */
export interface TimedOverride {
  readonly override: Override
  readonly endsAtUs: number
}

/** Returns overrides in the form in which they are looked up. */
export function overridesOf(timed: readonly TimedOverride[]): ActiveOverrides {
  const byTarget = new Map(
    timed.map(({ override, endsAtUs }) => [
      targetKey(override),
      { endsAtUs, compiled: new ActiveOverride(override) },
    ]),
  )
  return {
    size: byTarget.size,
    find(target, nowUs) {
      const found = byTarget.get(target)
      return found !== undefined && found.endsAtUs > nowUs ? found.compiled : null
    },
    leftUs: (target, nowUs) => Math.max(0, (byTarget.get(target)?.endsAtUs ?? 0) - nowUs),
  }
}
