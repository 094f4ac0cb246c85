import type { Limit } from '../algorithms/algorithm.js'
import type { WrittenLimit } from '../algorithms/all-algorithms.js'
import type { Duration } from '../algorithms/durations.js'
import type { FailureMode } from '../check/check.js'
import type { Config, HeaderStyle, Levels, Mask, Mode } from '../policy/config.js'
import type { LeaseOptions } from '../policy/leases.js'
import type { RefundBound } from '../policy/refund-rule.js'
import type { defaultTiers, Priority, TierOptions } from '../policy/tiers.js'
import type { ForwardedHeader, TrustedProxies } from '../subject/client-address.js'
import type { JwtSourceConfig } from '../subject/source-config.js'
import type { PerAddressTimes, TrustedPeers } from '../subject/sources.js'
import type { Ipv6Networks } from '../subject/subject.js'
import { IssueList } from './config-error.js'
import { readConfig } from './read-config.js'

/** A limit as `slidingWindowLog()` and the other functions return it, or written as in the file. */
export type LimitInput = Limit | WrittenLimit

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
      readonly onStoreFailure?: FailureMode
    } & EnforcementInput)

type PolicyOrTierInput<Policy extends string, Tier extends string> =
  | { readonly tier: Tier; readonly policy?: undefined }
  | { readonly policy: Policy; readonly tier?: undefined }

/** Statuses of responses, or classes of them. */
type StatusesInput = OneOrMore<number | '2xx' | '3xx' | '4xx' | '5xx'>

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
  readonly also?: readonly { readonly subject: string; readonly policy: Policy }[]
  readonly scope?: string
  readonly refundIf?: StatusesInput | { readonly status: StatusesInput; readonly atMost?: RefundBound }
  readonly onStoreFailure?: FailureMode
  readonly headers?: HeaderStyle
  readonly priority?: Priority
}

interface BelievedHeaderInput<Tier extends string> {
  readonly header: string
  readonly from: TrustedPeers
  readonly tier?: Tier
  readonly perAddress?: PerAddressTimes
}

/** A source as in the file: its name, or a map of its name to its settings. */
export type SourceInput<Tier extends string> =
  | 'ip'
  | 'apikey'
  | 'fingerprint'
  | { readonly ip: { readonly tier?: Tier } }
  | {
      readonly fingerprint: {
        readonly headers?: readonly string[]
        readonly perAddress?: PerAddressTimes
      }
    }
  | { readonly internal: BelievedHeaderInput<Tier> }
  | { readonly user: BelievedHeaderInput<Tier> }
  | { readonly tenant: BelievedHeaderInput<Tier> }
  | {
      readonly apikey: {
        readonly header?: string
        readonly scheme?: string
        readonly unverified?: true
        readonly tier?: Tier
        readonly perAddress?: PerAddressTimes
      }
    }
  | {
      readonly session: {
        readonly cookie: string
        readonly unverified: true
        readonly tier?: Tier
        readonly perAddress?: PerAddressTimes
      }
    }
  | { readonly jwt: Omit<JwtSourceConfig, 'source'> }

/** An upstream as in the file: a URL, several, or the long form. */
export type UpstreamInput =
  | OneOrMore<string>
  | {
      readonly urls: OneOrMore<string>
      readonly host?: 'replace' | 'keep'
      readonly timeout?: Duration
      readonly connectTimeout?: Duration
      readonly concurrency?: { readonly floor: number; readonly ceiling: number }
    }

/** A route as in the file. */
export interface RouteInput {
  readonly match: { readonly host?: OneOrMore<string>; readonly path?: `/${string}` }
  readonly upstream: UpstreamInput
}

type Tiers = 'default' | Readonly<Record<string, TierOptions>>
type TierNameOf<T extends Tiers> = T extends 'default' ? keyof typeof defaultTiers : keyof T & string

/** A policy file in code. Names of policies and tiers that do not exist fail to compile. */
export interface ConfigOptions<
  Policies extends Readonly<Record<string, PolicyInput>>,
  T extends Tiers,
  Policy extends string = keyof Policies & string,
  Tier extends string = TierNameOf<T>,
> extends EnforcementInput {
  readonly prefix?: string
  readonly tenant?: string
  readonly service?: string
  readonly tiers?: T
  readonly policies?: Policies
  readonly levels?: Levels
  readonly default?: NoInfer<PolicyOrTierInput<Policy, Tier>>
  readonly global?: NoInfer<{ readonly policy: Policy } & EnforcementInput>
  readonly rules?: readonly NoInfer<RuleInput<Policy, Tier>>[]
  readonly identify?: readonly NoInfer<SourceInput<Tier>>[]
  readonly subjects?: Readonly<Record<string, NoInfer<PolicyOrTierInput<Policy, Tier>>>>
  readonly secretTypes?: readonly string[]
  readonly masks?: Mask | Readonly<Record<string, Mask>>
  readonly ipv6Networks?: Ipv6Networks
  readonly costs?: Readonly<Record<string, number>>
  readonly skip?: { readonly prefixes?: readonly string[]; readonly extensions?: readonly string[] }
  readonly trustedProxies?: TrustedProxies
  readonly forwardedHeader?: ForwardedHeader
  readonly onStoreFailure?: FailureMode
  readonly headers?: HeaderStyle
  readonly cors?: {
    readonly origins: readonly string[]
    readonly exposedHeaders?: readonly string[]
    readonly credentials?: boolean
  }
  readonly upstream?: UpstreamInput
  readonly routes?: readonly RouteInput[]
}

/**
 * Validates a configuration in code: the same fields as the policy file, under the same rules. Throws a
 * `ConfigError` that lists every mistake with its path.
 *
 * @example
 * defineConfig({ policies: { api: slidingWindowLog({ limit: 100, window: '1m' }) }, default: { policy: 'api' } })
 */
export function defineConfig<
  const Policies extends Readonly<Record<string, PolicyInput>> = Record<never, PolicyInput>,
  const T extends Tiers = 'default',
>(options: ConfigOptions<Policies, T>): Config<keyof Policies & string, TierNameOf<T>> {
  const issues = new IssueList()
  const config = readConfig(options, (path, complaint) => issues.add(path, complaint, () => null))
  issues.throwIfAny('defineConfig()')
  return config as Config<keyof Policies & string, TierNameOf<T>>
}
