/** The options of every adapter. `Native` is the framework's own request. */

import type { Decision } from '../decision/decision.js'
import type { HeaderOptions, HideableName } from '../decision/headers.js'
import type { Gate } from '../gate/gate.js'
import type { AlsoAsked, Ask } from '../limiter/ask.js'
import type { Limiter } from '../limiter/limiter.js'
import type { Logger } from '../observe/logger.js'
import type { HeaderStyle } from '../policy/config.js'
import type { RefundBound } from '../policy/refund-rule.js'
import type { RequestFacts } from '../policy/request-facts.js'
import type { Eventually } from '../store/store.js'
import type { ForwardedHeader } from '../subject/client-address.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { Identify, Identity, Within } from '../subject/identify.js'
import type { SubjectInput } from '../subject/subject.js'
import type { TrustedProxies } from '../subject/trusted-proxies.js'

/** A value, or a function that finds it for a request. */
export type Of<Native, T> = T | ((request: Native) => Eventually<T>)

export type IsRefunded<Native> = (status: number, request: Native) => boolean

/** Which responses give back the charge, and how much of it at most: `'100/1m'`, or `'limit'`, the default. */
export interface RefundIf<Native> {
  readonly status: IsRefunded<Native>
  readonly atMost?: RefundBound
}

export interface CommonOptions<Native> {
  /** The cost of a request. Default 1; with a gate, what the rules say. */
  readonly cost?: Of<Native, number>
  /** The scope. Default `global`: one budget for everything. */
  readonly scope?: Of<Native, string>
  /** Gives each route of the framework's router a budget of its own, whatever the spelling of the path. */
  readonly perRoute?: boolean
  /** Requests that are neither charged nor reported. */
  readonly skip?: (request: Native) => Eventually<boolean>
  /** Called once for every decision. */
  readonly onDecision?: (decision: Decision, request: Native) => void
  /** Called before a request is refused. */
  readonly onDenied?: (decision: Decision, request: Native) => void
  /**
   * Whether a response with this status gives back the charge: with `status => status < 400` only failures count,
   * with `status => status === 304` unmodified responses are free. At most as much as the limits admit comes back, or
   * `atMost`: clients can choose many a status.
   */
  readonly refundIf?: IsRefunded<Native> | RefundIf<Native>
  /** The headers a response carries. Default `legacy`: `X-RateLimit-*`; with a gate, what the rules say. */
  readonly headers?: HeaderStyle | Pick<HeaderOptions, 'style' | 'draft'>
  /** Names to leave out of headers and bodies. */
  readonly hide?: readonly HideableName[]
  /** Returns the body of a refusal, instead of the default one. A string is sent as text, anything else as JSON. */
  readonly body?: (decision: Decision, request: Native) => unknown
  /** The type of that body, if it is neither `text/plain` nor `application/json`. */
  readonly contentType?: string
  /**
   * The most by which `Retry-After` is randomly delayed, so that clients refused together do not come back
   * together.
   */
  readonly retryAfterJitterMs?: number
  /** Proxies whose word about the client's address is taken. Not beside `identify`. */
  readonly trustedProxies?: TrustedProxies
  /** The header in which they name the client. Default `x-forwarded-for`. */
  readonly forwardedHeader?: ForwardedHeader
  /** Identifies the caller and its tier by sources: what `createIdentify()` or `identifyByConfig()` returns. */
  readonly identify?: (request: HttpRequest, within: Within) => Eventually<Identity>
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

/** Options for limits that are named here. */
export interface LimiterOptions<Native, PolicyName extends string, TierName extends string>
  extends CommonOptions<Native>,
    Pick<Ask<PolicyName, TierName>, 'onStoreFailure'> {
  readonly limiter: Limiter<PolicyName, TierName>
  readonly gate?: undefined
  /** Identifies the caller; null or undefined: by the client's address, which is also the default. */
  readonly subject?: Of<Native, SubjectInput | null | undefined>
  /** The policy to charge. Give either this or `tier`. */
  readonly policy?: NoInfer<PolicyName>
  readonly tier?: Of<Native, NoInfer<TierName>>
  /**
   * Further subjects, such as a user's organisation, that are charged under a policy or tier of their own, all or
   * none.
   */
  readonly also?: Of<Native, readonly AlsoAsked<NoInfer<PolicyName>, NoInfer<TierName>>[]>
}

/** Options for limits that the rules of a policy file find. */
export interface GateOptions<Native, TierName extends string> extends CommonOptions<Native> {
  readonly gate: Gate<string, TierName>
  readonly limiter?: undefined
  /** Not with a gate: the rules of its file say it. */
  readonly also?: undefined
  /**
   * Identifies the caller, from the most specific subject to the least, or by one alone; null or undefined: by the
   * client's address. Default: by the policy file.
   */
  readonly subject?: Of<Native, RequestFacts['subject'] | null | undefined>
  /** The caller's tier, if a session or a key told it. */
  readonly tier?: Of<Native, NoInfer<TierName> | undefined>
}

export type RateLimitOptions<Native, PolicyName extends string, TierName extends string> =
  | LimiterOptions<Native, PolicyName, TierName>
  | GateOptions<Native, TierName>

/** For runtimes that do not reveal the peer: one of these is required. */
export type NamesCaller = { readonly subject: unknown } | { readonly identify: Identify }

/** The options without the names of policies and tiers, for code that only passes them on. */
export type AnyOptions<Native> = RateLimitOptions<Native, string, string>
