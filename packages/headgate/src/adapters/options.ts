/** The options of every adapter. `Native` is the framework's own request. */
import type { AlsoCharged, CheckOptions } from '../check/check-options.js'
import type { Decision } from '../decision/decision.js'
import type { HeaderOptions, HideableName } from '../decision/headers.js'
import type { Limiter, RuleLimiter } from '../limiter/limiter.js'
import type { Logger } from '../observe/logger.js'
import type { HeaderStyle } from '../policy/config.js'
import type { WrittenBound } from '../policy/refund-rule.js'
import type { WaitOptions } from '../policy/wait.js'
import type { MaybePromise } from '../store/store.js'
import type { ForwardedHeader, TrustedProxies } from '../subject/client-address.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { Identify, Identity, Within } from '../subject/identify.js'
import type { SubjectInput } from '../subject/subject.js'
import type { InlineLimit } from './inline-limit.js'

/** A value, or a function that finds it for a request. */
export type Of<Native, T> = T | ((request: Native) => MaybePromise<T>)

export type IsRefunded<Native> = (status: number, request: Native) => boolean

/** Which responses give back the charge, and how much of it at most: `'100/1m'`, or `'limit'`, the default. */
export interface RefundIf<Native> {
  readonly status: IsRefunded<Native>
  readonly atMost?: WrittenBound
}

export interface CommonOptions<Native> {
  /** The cost of a request. Default 1, or what the rules say. */
  readonly cost?: Of<Native, number>
  /** The scope. Default `global`: one budget for everything. */
  readonly scope?: Of<Native, string>
  /** Gives each route of the framework's router a budget of its own, whatever the spelling of the path. */
  readonly perRoute?: boolean
  /** Requests that are neither charged nor reported. */
  readonly skip?: (request: Native) => MaybePromise<boolean>
  /** Called once for every decision. */
  readonly onDecision?: (decision: Decision, request: Native) => void
  /** Called before a request is rejected. */
  readonly onDenied?: (decision: Decision, request: Native) => void
  /**
   * Whether a response with this status gives back the charge: with `status => status < 400` only failures count,
   * with `status => status === 304` unmodified responses are free. At most as much as the limits admit comes back, or
   * `atMost`: clients can choose many a status.
   */
  readonly refundIf?: IsRefunded<Native> | RefundIf<Native>
  /**
   * Whether a response with this status forgets what the caller has used, strikes of a ban included: with
   * `status => status < 400` a login that succeeds. Others who pay with it (`also`) get back what this request took.
   */
  readonly resetIf?: (status: number, request: Native) => boolean
  /**
   * Lets a request wait for room instead of being denied: `{ atMost: '500ms', queue: 100 }`. With rules, for those that
   * do not say it themselves.
   */
  readonly wait?: WaitOptions
  /** The headers a response carries. Default `legacy`: `X-RateLimit-*`, or what the rules say. */
  readonly headers?: HeaderStyle | Pick<HeaderOptions, 'style' | 'draft'>
  /** Names to leave out of headers and bodies. */
  readonly hide?: readonly HideableName[]
  /** Returns the body of a rejection, instead of the default one. A string is sent as text, anything else as JSON. */
  readonly body?: (decision: Decision, request: Native) => unknown
  /** The type of that body, if it is neither `text/plain` nor `application/json`. */
  readonly contentType?: string
  /**
   * The most by which `Retry-After` is randomly delayed, so that clients rejected together do not come back
   * together.
   */
  readonly retryAfterJitterMs?: number
  /** Proxies whose word about the client's address is taken. Not beside `identify`. */
  readonly trustedProxies?: TrustedProxies
  /** The header in which they name the client. Default `x-forwarded-for`. */
  readonly forwardedHeader?: ForwardedHeader
  /** Identifies the caller and its tier by sources: what `createIdentify()` or `identifyByConfig()` returns. */
  readonly identify?: (request: HttpRequest, within: Within) => MaybePromise<Identity>
  /** How long `identify`, `skip`, `subject`, `tier`, `cost` and `scope` may take together. Default 1,000. */
  readonly lookupTimeoutMs?: number
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /**
   * Called with an error that prevented a decision, and the decision that the failure mode made; with an error of a
   * function that looks a request up, and the decision on its address; or with an error of a listener or `body`,
   * without a decision. Default: logs it, at most once a minute.
   */
  readonly onError?: (error: unknown, decision?: Decision) => void
}

/** The options beside a limiter. */
export interface LimiterOptions<Native, PolicyName extends string, TierName extends string>
  extends CommonOptions<Native>,
    Pick<CheckOptions<PolicyName, TierName>, 'onStoreFailure'> {
  readonly limiter: Limiter<PolicyName, TierName>
  /**
   * Identifies the caller; with rules, from the most specific subject to the least, or by one alone. Null or undefined: by
   * the client's address. Default: by the policy file, or by the client's address.
   */
  readonly subject?: Of<Native, SubjectInput | readonly SubjectInput[] | null | undefined>
  /** The policy to charge, instead of a tier or the rules. */
  readonly policy?: Of<Native, NoInfer<PolicyName>> | undefined
  /** The tier to charge; with rules, the caller's tier, if a session or a key told it. */
  readonly tier?: Of<Native, NoInfer<TierName> | undefined>
  /**
   * Further subjects, such as a user's organisation, that are charged under a policy or tier of their own, all or
   * none. Not with rules: those of the file say it.
   */
  readonly also?: Of<Native, readonly AlsoCharged<NoInfer<PolicyName>, NoInfer<TierName>>[]>
}

/**
 * The options of every adapter: a limit in one line, or a limiter. One with a policy file finds the limits of a request
 * by its rules, unless `policy` names one; any other limiter needs a `policy` or a `tier`.
 */
export type RateLimitOptions<Native, PolicyName extends string, TierName extends string> =
  | InlineLimit<Native>
  | (LimiterOptions<Native, PolicyName, TierName> & { readonly limiter: RuleLimiter<PolicyName, TierName> })
  | (LimiterOptions<Native, PolicyName, TierName> & { readonly policy: Of<Native, NoInfer<PolicyName>> })
  | (LimiterOptions<Native, PolicyName, TierName> & {
      readonly tier: Of<Native, NoInfer<TierName> | undefined>
    })

/** The same with some options left out. */
export type Without<Options, Name extends PropertyKey> = Options extends unknown ? Omit<Options, Name> : never

/** The limiter whose rules find the limits of a request; null if the options name a policy, or there are no rules. */
export function rulesOf<Native>({ limiter, policy }: AnyLimiterOptions<Native>): RuleLimiter | null {
  return limiter.hasRules && policy === undefined ? (limiter as RuleLimiter) : null
}

/** For runtimes that do not reveal the peer: one of these is required. */
export type NamesCaller = { readonly subject: unknown } | { readonly identify: Identify }

/** The options without the names of policies and tiers, for code that only passes them on. */
export type AnyOptions<Native> = AnyLimiterOptions<Native> | InlineLimit<Native>

/** The same once an inline limit has become a limiter. */
export type AnyLimiterOptions<Native> = LimiterOptions<Native, string, string>
