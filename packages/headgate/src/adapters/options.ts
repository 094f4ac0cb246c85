/** The options of every adapter, whatever the framework: `Native` is the framework's own request. */

import type { Decision } from '../decision/decision.js'
import type { HeaderOptions, HideableName } from '../decision/headers.js'
import type { Gate } from '../gate/gate.js'
import type { AlsoAsked, Ask } from '../limiter/ask.js'
import type { Limiter } from '../limiter/limiter.js'
import type { Logger } from '../observe/logger.js'
import type { HeaderStyle } from '../policy/config.js'
import type { RequestFacts } from '../policy/request-facts.js'
import type { Eventually } from '../store/store.js'
import type { ForwardedHeader } from '../subject/client-address.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { Identify, Identity } from '../subject/identify.js'
import type { SubjectInput } from '../subject/subject.js'
import type { TrustedProxies } from '../subject/trusted-proxies.js'

/** A value, or a function that finds it for a request. */
export type Of<Native, T> = T | ((request: Native) => Eventually<T>)

export interface CommonOptions<Native> {
  /** Units a request takes. Default 1; with a gate what the rules say. */
  readonly cost?: Of<Native, number>
  /** The scope. Default `global`: one budget for everything. */
  readonly scope?: Of<Native, string>
  /** A budget for each route that the framework's router knows, whatever the spelling of the path. */
  readonly perRoute?: boolean
  /** Requests that are neither charged nor told about. */
  readonly skip?: (request: Native) => Eventually<boolean>
  /** Told every decision, once. */
  readonly onDecision?: (decision: Decision, request: Native) => void
  /** Told every request that is about to be refused. */
  readonly onDenied?: (decision: Decision, request: Native) => void
  /**
   * Whether a response of this status gives back what its request charged: `status => status < 400` lets only failures
   * count, `status => status === 304` makes what is not modified free.
   */
  readonly refundIf?: (status: number, request: Native) => boolean
  /** The headers a response carries. Default `legacy`: `X-RateLimit-*`; with a gate as the rules say. */
  readonly headers?: HeaderStyle | Pick<HeaderOptions, 'style' | 'draft'>
  /** Names that stay in the house: left out of headers and bodies. */
  readonly hide?: readonly HideableName[]
  /** The body of a refusal instead of ours: a string is sent as text, anything else as JSON. */
  readonly body?: (decision: Decision, request: Native) => unknown
  /** The type of that body, where it is neither `text/plain` nor `application/json`. */
  readonly contentType?: string
  /**
   * Most that `Retry-After` is made later by, at random, so that those who were refused together do not come back
   * together.
   */
  readonly retryAfterJitterMs?: number
  /** Proxies whose word about the client's address is believed. For when `subject` is left out. */
  readonly trustedProxies?: TrustedProxies
  /** The header in which they say it. Default `x-forwarded-for`. */
  readonly forwardedHeader?: ForwardedHeader
  /** Finds out who is asking, and the tier, from sources: what `createIdentify()` or `identifyByConfig()` returns. */
  readonly identify?: (request: HttpRequest) => Eventually<Identity>
  /** How long `identify`, `skip`, `subject`, `tier`, `cost` and `scope` may take together. Default 1,000. */
  readonly lookupTimeoutMs?: number
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /**
   * Told whatever threw instead of a decision, and the one that the failure mode made then; or what a listener or
   * `body` threw, without one. Default: the logger, once a minute.
   */
  readonly onError?: (error: unknown, decision?: Decision) => void
}

/** Limits that are named here. */
export interface LimiterOptions<Native, PolicyName extends string, TierName extends string>
  extends CommonOptions<Native>,
    Pick<Ask<PolicyName, TierName>, 'onStoreFailure'> {
  readonly limiter: Limiter<PolicyName, TierName>
  readonly gate?: undefined
  /** Says who is asking. Left out: the address of the client. */
  readonly subject?: Of<Native, SubjectInput>
  /** This, or `tier`. */
  readonly policy?: NoInfer<PolicyName>
  readonly tier?: Of<Native, NoInfer<TierName>>
  /**
   * Further subjects that are charged, each by a policy or tier of its own, all or none: the organisation of a user.
   */
  readonly also?: Of<Native, readonly AlsoAsked<NoInfer<PolicyName>, NoInfer<TierName>>[]>
}

/** Limits that the rules of a policy file find. */
export interface GateOptions<Native, TierName extends string> extends CommonOptions<Native> {
  readonly gate: Gate<string, TierName>
  readonly limiter?: undefined
  /** The rules of a file say it. */
  readonly also?: undefined
  /** Says who is asking, from the most specific to the least, or one alone. Left out: what the policy file says. */
  readonly subject?: Of<Native, RequestFacts['subject']>
  /** The caller's tier, where a session or a key has told it. */
  readonly tier?: Of<Native, NoInfer<TierName> | undefined>
}

export type RateLimitOptions<Native, PolicyName extends string, TierName extends string> =
  | LimiterOptions<Native, PolicyName, TierName>
  | GateOptions<Native, TierName>

/** For runtimes that do not say who is connected: one of these must be given. */
export type NamesCaller = { readonly subject: unknown } | { readonly identify: Identify }

/** The same with the names of policies and tiers forgotten, for what only passes them on. */
export type AnyOptions<Native> = RateLimitOptions<Native, string, string>
