import type { Limit } from '../engine/limit.js'
import type { Config, HeaderStyleName, Levels, Mode, StoreFailure } from '../policy/config.js'
import type { LeaseOptions } from '../policy/leases.js'
import type { CounterOptions, TokenBucketOptions, WindowOptions } from '../policy/limits.js'
import type { defaultTiers, TierOptions } from '../policy/tiers.js'
import { ProblemList } from './problem.js'
import { readConfig } from './read-config.js'

/** A limit as `slidingWindowLog()` and its like make it, or written as in the file. */
export type LimitInput =
  | Limit
  | ({ readonly algorithm: 'sliding-window-log' } & WindowOptions)
  | ({ readonly algorithm: 'sliding-window-counter' } & CounterOptions)
  | ({ readonly algorithm: 'token-bucket' } & TokenBucketOptions)

type OneOrMore<T> = T | readonly T[]

interface EnforcementInput {
  readonly mode?: Mode
  readonly enforce?: `${number}%`
}

/** A policy: a limit, a list of them, or the long form. */
export type PolicyInput =
  | OneOrMore<LimitInput>
  | ({
      readonly limits: OneOrMore<LimitInput>
      readonly lease?: LeaseOptions
      readonly candidate?: OneOrMore<LimitInput>
      readonly onStoreFailure?: StoreFailure
    } & EnforcementInput)

type ChargeInput<Policy extends string, Tier extends string> =
  | { readonly tier: Tier; readonly policy?: undefined }
  | { readonly policy: Policy; readonly tier?: undefined }

/** A rule as in the file. */
export interface RuleInput<Policy extends string, Tier extends string> extends EnforcementInput {
  readonly name?: string
  readonly match: {
    readonly method?: OneOrMore<string>
    readonly path?: `/${string}`
    readonly subject?: OneOrMore<string>
    readonly tier?: OneOrMore<Tier>
    readonly scope?: OneOrMore<string>
  }
  readonly policy?: Policy
  readonly tier?: Tier
  readonly cost?: number
  readonly per?: 'caller' | 'everyone'
  readonly scope?: string
  readonly onStoreFailure?: StoreFailure
  readonly headers?: HeaderStyleName
}

type Tiers = 'default' | Readonly<Record<string, TierOptions>>
type TierNameOf<T extends Tiers> = T extends 'default' ? keyof typeof defaultTiers : keyof T & string

/** What a policy file says, in code. Names of policies and tiers that do not exist do not compile. */
export interface ConfigOptions<
  Policies extends Readonly<Record<string, PolicyInput>>,
  T extends Tiers,
  Policy extends string = keyof Policies & string,
  Tier extends string = TierNameOf<T>,
> extends EnforcementInput {
  readonly prefix?: string
  readonly tenant?: string
  readonly tiers?: T
  readonly policies?: Policies
  readonly levels?: Levels
  readonly default?: NoInfer<ChargeInput<Policy, Tier>>
  readonly global?: NoInfer<{ readonly policy: Policy } & EnforcementInput>
  readonly rules?: readonly NoInfer<RuleInput<Policy, Tier>>[]
  readonly subjects?: Readonly<Record<`${string}:${string}`, NoInfer<ChargeInput<Policy, Tier>>>>
  readonly costs?: Readonly<Record<string, number>>
  readonly skip?: { readonly prefixes?: readonly string[]; readonly extensions?: readonly string[] }
  readonly trustedProxies?: readonly string[]
  readonly onStoreFailure?: StoreFailure
  readonly headers?: HeaderStyleName
  readonly upstream?: string
}

/**
 * A configuration in code: the same fields as the policy file, held to the same rules. Throws a `ConfigError` with
 * every mistake by its path.
 */
export function defineConfig<
  const Policies extends Readonly<Record<string, PolicyInput>> = Record<never, PolicyInput>,
  const T extends Tiers = 'default',
>(options: ConfigOptions<Policies, T>): Config {
  const problems = new ProblemList()
  const config = readConfig(options, (path, complaint) => problems.add(path, complaint, () => null))
  problems.throwIfAny('defineConfig()')
  return config
}
