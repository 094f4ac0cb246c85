import type { Config } from '../policy/config.js'
import type { DEFAULT_TIERS } from '../policy/tier-numbers.js'
import { IssueList } from './config-error.js'
import type { policyFile } from './file/policy-file.js'
import { readConfig } from './read-config.js'
import type { ReadyPolicyName } from './ready-policies.js'
import type { NameOf } from './shape/scalars.js'
import type { WrittenAs } from './shape/shape.js'

/** A policy file in code, before the names that it defines are known. */
type Written = WrittenAs<typeof policyFile>

/** A policy: a limit, a list of them, or the long form. */
export type PolicyInput = NonNullable<Written['policies']>[string]
type Policies = Readonly<Record<string, PolicyInput>>
type Tiers = NonNullable<Written['tiers']>
type TierNameOf<T extends Tiers> = T extends 'default' ? keyof typeof DEFAULT_TIERS : keyof T & string

/** The same with these names of policies and tiers wherever one is written. */
type WithNames<T, Policy extends string, Tier extends string> =
  T extends NameOf<'policies'>
    ? Policy
    : T extends NameOf<'tiers'>
      ? Tier
      : T extends object
        ? { readonly [Key in keyof T]: WithNames<T[Key], Policy, Tier> }
        : T

/**
 * A policy file in code: the fields of the policy file, as the shapes that read it have them. Names of policies and tiers
 * that do not exist fail to compile.
 */
export type ConfigOptions<P extends Policies, T extends Tiers> = {
  readonly policies?: P
  readonly tiers?: T
} & WithNames<
  Omit<Written, 'policies' | 'tiers'>,
  NoInfer<(keyof P & string) | ReadyPolicyName>,
  NoInfer<TierNameOf<T>>
>

/**
 * Validates a configuration in code: the same fields as the policy file, under the same rules. Throws a
 * `ConfigError` that lists every mistake with its path.
 *
 * @example
 * defineConfig({ policies: { api: slidingWindowLog({ limit: 100, window: '1m' }) }, default: { policy: 'api' } })
 */
export function defineConfig<
  const P extends Policies = Record<never, PolicyInput>,
  const T extends Tiers = 'default',
>(options: ConfigOptions<P, T>): Config<keyof P & string, TierNameOf<T>> {
  const issues = new IssueList()
  const config = readConfig(options, issues.add)
  if (config === null) throw issues.toError('defineConfig()')
  return config as Config<keyof P & string, TierNameOf<T>>
}
