import type { Limit } from '../engine/limit.js'
import type { FailureMode } from '../engine/question.js'
import { unexpected } from '../errors/headgate-error.js'
import type { ForwardedHeader } from '../subject/client-address.js'
import type { SourceConfig } from '../subject/source-config.js'
import type { Ipv6Networks } from '../subject/subject.js'
import type { TrustedProxies } from '../subject/trusted-proxies.js'
import type { LeaseOptions } from './leases.js'
import type { Statuses } from './statuses.js'
import type { TierOptions } from './tiers.js'

/**
 * A policy file, checked: every name in it exists, every number is in range. Made by `loadConfig` or `defineConfig`;
 * plain data, so that it can be compared, printed and sent.
 */
export interface Config<PolicyName extends string = string, TierName extends string = string> {
  /** First part of every Redis key. */
  readonly prefix?: string
  /** Keeps the limits of several products on one Redis apart. */
  readonly tenant?: string
  /** The program these processes are: a process shares the limits with those of its own name while Redis is away. */
  readonly service?: string
  readonly tiers: Readonly<Record<TierName, TierOptions>>
  readonly policies: Readonly<Record<PolicyName, PolicyConfig>>
  /** How the levels route, caller and global combine. */
  readonly levels: Levels
  /** For every rule and policy that says nothing itself. */
  readonly mode: Mode
  /** Of 100 subjects, how many are limited; the others are in shadow. Only beside the mode `enforce`. */
  readonly enforcePercent: number
  /** The policy or tier of callers about whom nothing else is said. */
  readonly default: PolicyOrTier
  /** One budget that all callers share, the least specific level. */
  readonly global: GlobalConfig | null
  readonly rules: readonly RuleConfig[]
  /**
   * Sources that find who is asking, in the order in which they are tried. Null where the file leaves that to the
   * program.
   */
  readonly identify: readonly SourceConfig[] | null
  /** Callers named one by one, by `type:id`: their tier, or a policy of their own. */
  readonly subjects: ReadonlyMap<string, PolicyOrTier>
  /** Subject types whose ids are kept only as a keyed hash, beside those that look like secrets. */
  readonly secretTypes: readonly string[]
  /** How operators are shown subjects. */
  readonly masks: Masks
  /** Budgets beside that of an IPv6 caller's /64. */
  readonly ipv6Networks: Ipv6Networks
  /** Units a request takes, by `METHOD /path`, where its rule does not say. */
  readonly costs: readonly CostConfig[]
  readonly skip: SkipConfig
  /** Whose word about the client's address is taken. */
  readonly trustedProxies: TrustedProxies
  /** The header in which they say it. */
  readonly forwardedHeader: ForwardedHeader
  readonly onStoreFailure?: FailureMode
  readonly headers?: HeaderStyle
  /** Where the gateway sends what it lets through and no route is for. */
  readonly upstream: UpstreamConfig | null
  readonly routes: readonly RouteConfig[]
}

/** Of a subject's id: its beginning, all of it, or nothing. */
export type Mask = 'part' | 'whole' | 'hidden'

export interface Masks {
  /** By subject type, in lower case. */
  readonly byType: Readonly<Record<string, Mask>>
  readonly others: Mask
}

/** Servers that do the same. */
export interface UpstreamConfig {
  readonly urls: readonly string[]
  /** Whose name `Host` has: the server's own, or the one the client asked for. */
  readonly host: 'replace' | 'keep'
  /** How long they may be silent before they begin to answer. */
  readonly timeoutMs: number
  readonly connectTimeoutMs: number
  /** The bounds of how many requests may be under way at them; left out, there are none. */
  readonly concurrency?: { readonly floor: number; readonly ceiling: number }
}

/** Sends some requests to an upstream of their own. The most specific is taken: by host, then by the longest path. */
export interface RouteConfig {
  /** Names, or `*.` and the end of names; null is any. */
  readonly hosts: readonly string[] | null
  /** The beginning of paths, in whole segments; null is any. */
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

/** The limits to charge: a tier's or a policy's. */
export type PolicyOrTier =
  | { readonly tier: string; readonly policy?: undefined }
  | { readonly policy: string; readonly tier?: undefined }

/** How far a limit is enforced. What is left out is inherited. */
export interface Enforcement {
  readonly mode?: Mode
  readonly enforcePercent?: number
}

export interface PolicyConfig extends Enforcement {
  readonly limits: readonly Limit[]
  /** Limits to try: evaluated in the same call as the live ones and reported, never enforced. */
  readonly candidate?: readonly Limit[]
  readonly onStoreFailure?: FailureMode
  /** How units of hot keys may be taken in advance. Left out: not at all. */
  readonly lease?: LeaseOptions
}

export interface GlobalConfig extends Enforcement {
  readonly policy: string
}

/** When a request matches: what it is charged to, and how. The first rule that matches on its level is taken. */
export interface RuleConfig extends Enforcement {
  /** Names the rule in explanations, overrides and metrics. Default: method and path as they are written. */
  readonly name: string
  readonly match: MatchConfig
  /** Left out: the caller's tier, so that a rule may set a cost or a mode alone. */
  readonly charge: PolicyOrTier | null
  readonly cost?: number
  /** Whose budget: each caller's own (the default), or one that all callers share. */
  readonly per: 'caller' | 'everyone'
  /** The budget of the policy; `global` is one for all routes. */
  readonly scope: string
  readonly onStoreFailure?: FailureMode
  readonly headers?: HeaderStyle
  /** Statuses of responses that give back what their request took. */
  readonly refundIf?: readonly Statuses[]
  /** Further subjects of the request that are charged with it, all or none. */
  readonly also?: readonly AlsoConfig[]
}

/** The subject of a type, where the request has one, and what it is charged to. */
export interface AlsoConfig {
  /** A subject type. */
  readonly subject: string
  readonly policy: string
}

/** All that is given must hold. A rule with a method or a path is on the route level, another on the caller's. */
export interface MatchConfig {
  /** Upper case. */
  readonly methods: readonly string[] | null
  /** `/users/:id/posts`; `*` at the end matches any rest. */
  readonly path: string | null
  /** Subject types; the rule is charged to the first subject of the request that has one of them. */
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

/** Requests that are not limited. A request that a rule names by its path is never among them. */
export interface SkipConfig {
  /** Whole segments: `/_next` covers `/_next` and everything below it, not `/_nextgen`. */
  readonly prefixes: readonly string[]
  /** File extensions of GET and HEAD requests: `css`, without the dot. */
  readonly extensions: readonly string[]
}

export const FAILURE_MODES = ['local', 'open', 'closed'] as const satisfies readonly FailureMode[]

export function parseFailureMode(mode: unknown): FailureMode {
  if (FAILURE_MODES.includes(mode as FailureMode)) return mode as FailureMode
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'onStoreFailure', "'local', 'open' or 'closed'", mode)
}
