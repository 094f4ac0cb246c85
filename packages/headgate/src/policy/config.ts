import type { Limit } from '../engine/limit.js'
import type { LeaseOptions } from './leases.js'
import type { TierOptions } from './tiers.js'

/**
 * A policy file, checked: every name in it exists, every number is in range. Made by `loadConfig` or `defineConfig`;
 * plain data, so that it can be compared, printed and sent.
 */
export interface Config {
  /** First part of every Redis key. */
  readonly prefix?: string
  /** Keeps the limits of several products on one Redis apart. */
  readonly tenant?: string
  readonly tiers: Readonly<Record<string, TierOptions>>
  readonly policies: Readonly<Record<string, PolicyConfig>>
  /** How the levels route, caller and global combine. */
  readonly levels: Levels
  /** For every rule and policy that says nothing itself. */
  readonly mode: Mode
  /** Of 100 subjects, how many are limited; the others are in shadow. Only beside the mode `enforce`. */
  readonly enforcePercent: number
  /** What a caller is charged to about whom nothing else is said. A tier is that of callers whose tier nobody tells. */
  readonly default: Charge
  /** One budget that all callers share, the least specific level. */
  readonly global: GlobalConfig | null
  readonly rules: readonly RuleConfig[]
  /** Callers named one by one, by `type:id`: their tier, or a policy of their own. */
  readonly subjects: ReadonlyMap<string, Charge>
  /** Units a request takes, by `METHOD /path`, where its rule does not say. */
  readonly costs: readonly CostConfig[]
  readonly skip: SkipConfig
  /** Addresses and networks whose word about the client's address is taken. */
  readonly trustedProxies: readonly string[]
  readonly onStoreFailure?: StoreFailure
  readonly headers?: HeaderStyleName
  /** Where the gateway sends what it lets through. */
  readonly upstream: string | null
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

export type StoreFailure = 'local' | 'open' | 'closed'
export type HeaderStyleName = 'legacy' | 'ietf' | 'both' | 'none'

/** What is charged: a tier's limits or a policy's. */
export type Charge =
  | { readonly tier: string; readonly policy?: undefined }
  | { readonly policy: string; readonly tier?: undefined }

/** How far a limit is enforced. What is left out is decided one level up. */
export interface Enforcement {
  readonly mode?: Mode
  readonly enforcePercent?: number
}

export interface PolicyConfig extends Enforcement {
  readonly limits: readonly Limit[]
  /** Limits to try: evaluated beside the live ones in the same call and reported, never enforced. */
  readonly candidate?: readonly Limit[]
  readonly onStoreFailure?: StoreFailure
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
  readonly charge: Charge | null
  readonly cost?: number
  /** Whose budget: each caller's own (the default), or one that all callers share. */
  readonly per: 'caller' | 'everyone'
  /** Which budget of the policy; `global` is one for all routes. */
  readonly scope: string
  readonly onStoreFailure?: StoreFailure
  readonly headers?: HeaderStyleName
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
  /** Whole segments: `/_next` is `/_next` and what is below it, not `/_nextgen`. */
  readonly prefixes: readonly string[]
  /** Of GET and HEAD requests for files: `css`, without the dot. */
  readonly extensions: readonly string[]
}
