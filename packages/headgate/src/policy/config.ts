import type { Limit } from '../algorithms/algorithm.js'
import type { FailureMode } from '../check/check.js'
import { invalidOption } from '../errors/headgate-error.js'
import type { ForwardedHeader, TrustedProxies } from '../subject/client-address.js'
import type { SourceConfig } from '../subject/source-config.js'
import type { Ipv6Networks } from '../subject/subject.js'
import type { LeaseOptions } from './leases.js'
import type { RefundRule, WrittenBound } from './refund-rule.js'
import type { Statuses } from './statuses.js'
import type { Priority, TierOptions } from './tier-numbers.js'
import type { MeterConfig } from './token-meters.js'
import type { Wait } from './wait.js'

/**
 * A validated policy file: every name in it exists, every number is in range. `loadConfig` and `defineConfig` make
 * it. It is data that can be compared and printed, and carries what resolves its rules under `RULES`.
 */
export interface Config<PolicyName extends string = string, TierName extends string = string> {
  /** The first part of every Redis key. */
  readonly prefix?: string
  /** Separates the limits of several products on one Redis. */
  readonly tenant?: string
  /**
   * The program these processes run. While Redis is unreachable, a process shares the limits only with processes of
   * the same service.
   */
  readonly service?: string
  readonly tiers: Readonly<Record<TierName, TierOptions>>
  readonly policies: Readonly<Record<PolicyName, PolicyConfig>>
  /** How the levels route, caller and global combine. */
  readonly levels: Levels
  /** The mode of every rule and policy that does not set its own. */
  readonly mode: Mode
  /** The percentage of subjects that are limited; the others are in shadow. Only valid with mode `enforce`. */
  readonly enforcePercent: number
  /** The policy or tier of callers that nothing else in the file covers. */
  readonly default: PolicyOrTier
  /** One budget shared by all callers; the least specific level. */
  readonly global: GlobalConfig | null
  readonly rules: readonly RuleConfig[]
  /** The sources that find who is asking, in order. Null if the file leaves that to the program. */
  readonly identify: readonly SourceConfig[] | null
  /** Individual callers by `type:id`, each with a tier or a policy. */
  readonly subjects: ReadonlyMap<string, PolicyOrTier>
  /** Subject types whose ids are stored only as a keyed hash, in addition to those that look like secrets. */
  readonly secretTypes: readonly string[]
  /** How subjects are shown to operators. */
  readonly masks: Masks
  /** Budgets of the networks around an IPv6 caller's /64. */
  readonly ipv6Networks: Ipv6Networks
  /** The cost of a request by `METHOD /path`, if its rule does not set one. */
  readonly costs: readonly CostConfig[]
  readonly skip: SkipConfig
  /** The proxies whose word about the client's address is taken. */
  readonly trustedProxies: TrustedProxies
  /** The header in which they name the client. */
  readonly forwardedHeader: ForwardedHeader
  readonly onStoreFailure?: FailureMode
  readonly headers?: HeaderStyle
  /** Which pages of other origins may read the gateway's own responses; null: none. */
  readonly cors: CorsConfig | null
  /** Where the gateway sends admitted requests that match no route. */
  readonly upstream: UpstreamConfig | null
  readonly routes: readonly RouteConfig[]
  /** What resolves its rules (`policy/rules.ts`): a limiter without a policy file does not bundle it. */
  readonly [RULES]?: object
}

/** Where a policy file carries what resolves its rules. */
export const RULES: unique symbol = Symbol.for('headgate.rules')

/** How much of a subject's id is shown: its beginning, all of it, or nothing. */
export type Mask = (typeof MASKS)[number]
export const MASKS = ['part', 'whole', 'hidden'] as const

export interface Masks {
  /** By subject type, in lower case. */
  readonly byType: Readonly<Record<string, Mask>>
  readonly others: Mask
}

/** Pages of other origins that may read the gateway's own responses. */
export interface CorsConfig {
  /** As browsers send them; `*` is every origin. */
  readonly origins: readonly string[]
  /** Headers of those responses that pages may read. Null: all of them. */
  readonly exposedHeaders: readonly string[] | null
  /** Whether pages may ask with cookies. */
  readonly credentials: boolean
}

/** A group of interchangeable servers. */
export interface UpstreamConfig {
  readonly urls: readonly string[]
  /** The `Host` that is sent: the server's own name, or the one the client asked for. */
  readonly host: 'replace' | 'keep'
  /** How long a server may take to start answering. */
  readonly timeoutMs: number
  readonly connectTimeoutMs: number
  /** Bounds on the requests in flight to them. Default: unbounded. */
  readonly concurrency?: { readonly floor: number; readonly ceiling: number }
}

/**
 * Sends some requests to an upstream of their own. The most specific route wins: by host, then by the longest path.
 */
export interface RouteConfig {
  /** Host names, or `*.` followed by the end of one; null matches any. */
  readonly hosts: readonly string[] | null
  /** The beginning of the path, in whole segments; null matches any. */
  readonly path: string | null
  readonly upstream: UpstreamConfig
}

/**
 * `most-specific`: the most specific level that has a rule decides. `all`: every level must admit.
 * `first-available`: the first level, from the most specific, that has room is charged.
 */
export type Levels = 'most-specific' | 'all' | 'first-available'

/**
 * `enforce` denies. `shadow` evaluates, counts and lets pass. `compare` decides in this process and evaluates the
 * store's decision beside it.
 */
export type Mode = 'enforce' | 'shadow' | 'compare'

/** The family of quota headers a response carries: `X-RateLimit-*`, the IETF draft's, both or none. */
export type HeaderStyle = (typeof HEADER_STYLES)[number]
export const HEADER_STYLES = ['legacy', 'ietf', 'both', 'none'] as const

/** The limits to charge: those of a tier or of a policy. */
export type PolicyOrTier =
  | { readonly tier: string; readonly policy?: undefined }
  | { readonly policy: string; readonly tier?: undefined }

/** How strictly a limit is enforced. Settings left out come from the level above. */
export interface Enforcement {
  readonly mode?: Mode
  readonly enforcePercent?: number
}

export interface PolicyConfig extends Enforcement {
  readonly limits: readonly Limit[]
  /** Bans who is denied too often. */
  readonly ban?: Limit
  /** Limits on trial: evaluated and reported in the same call as the live ones, never enforced. */
  readonly candidate?: readonly Limit[]
  readonly onStoreFailure?: FailureMode
  /** How units of hot keys may be taken in advance. Default: not at all. */
  readonly lease?: LeaseOptions
}

export interface GlobalConfig extends Enforcement {
  readonly policy: string
}

/** Says which requests match, and what they are charged to. On each level the first matching rule wins. */
export interface RuleConfig extends Enforcement {
  /** The name used in explanations, overrides and metrics. Default: method and path as written. */
  readonly name: string
  readonly match: MatchConfig
  /** The limits to charge. Null: those of the caller's tier, so that a rule may set only a cost or a mode. */
  readonly charge: PolicyOrTier | null
  readonly cost?: number
  /**
   * Whose budget is charged: each caller's own (the default), one shared by all callers, or the request's subjects of these types
   * together, as one.
   */
  readonly per: 'caller' | 'everyone' | readonly string[]
  /** The scope of the budget; `global` is one budget for all routes. */
  readonly scope: string
  readonly onStoreFailure?: FailureMode
  readonly headers?: HeaderStyle
  /** How important its requests are at an upstream that has not room for all. Default: as the caller's tier. */
  readonly priority?: Priority
  /** The responses that give back what the request was charged, and how often. */
  readonly refundIf?: RefundRule<WrittenBound>
  /** The responses that forget what its caller has used, strikes included. */
  readonly resetIf?: readonly Statuses[]
  /** Lets its requests wait for room instead of being denied. */
  readonly wait?: Wait
  /** Further subjects of the request that are charged with it, all or none. */
  readonly also?: readonly AlsoConfig[]
  /** The tokens of a model that a request reserves and its response settles, by meter. */
  readonly tokens?: readonly MeterConfig[]
}

/** Charges the request's subject of this type, if it has one, to a policy. */
export interface AlsoConfig {
  /** A subject type. */
  readonly subject: string
  readonly policy: string
}

/**
 * The conditions of a rule, all of which must hold. A rule with a method or a path is on the route level, any other
 * on the caller level.
 */
export interface MatchConfig {
  /** Upper case. */
  readonly methods: readonly string[] | null
  /** A pattern such as `/users/:id/posts`; a final `*` matches any rest. */
  readonly path: string | null
  /** Subject types. The rule charges the request's first subject of one of these types. */
  readonly subjects: readonly string[] | null
  readonly tiers: readonly string[] | null
  readonly scopes: readonly string[] | null
}

export interface CostConfig {
  /** Null: any method. */
  readonly method: string | null
  readonly path: string
  readonly cost: number
}

/** Requests that are not limited, unless a rule matches their path. */
export interface SkipConfig {
  /** Whole segments: `/_next` covers `/_next` and everything below it, but not `/_nextgen`. */
  readonly prefixes: readonly string[]
  /** File extensions without the dot, such as `css`. Apply to GET and HEAD only. */
  readonly extensions: readonly string[]
}

export const FAILURE_MODES = ['local', 'open', 'closed'] as const satisfies readonly FailureMode[]

/** Validates a failure mode. */
export function parseFailureMode(mode: unknown): FailureMode {
  if (FAILURE_MODES.includes(mode as FailureMode)) return mode as FailureMode
  throw invalidOption('onStoreFailure', "'local', 'open' or 'closed'", mode)
}
