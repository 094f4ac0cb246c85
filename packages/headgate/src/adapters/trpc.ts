import { TRPCError } from '@trpc/server'
import type { HeaderField } from '../decision/header-field.js'
import type { ProblemBody } from '../decision/problem.js'
import type { HttpRequest } from '../subject/http-request.js'
import { createEnforce, type Framework, type Refused } from './enforce.js'
import type { AnyOptions, GateOptions, LimiterOptions } from './options.js'
import { endAfter } from './response-end.js'

/** A call of a procedure, as tRPC tells its middleware of it. */
export interface ProcedureCall<Context> {
  readonly ctx: Context
  readonly path: string
  readonly type: 'query' | 'mutation' | 'subscription'
  /** Null or undefined before a parser of the procedure has run. */
  readonly input: unknown
  readonly getRawInput: () => Promise<unknown>
}

/** tRPC does not say who is connected and answers in its own words. */
type Elsewhere = 'body' | 'contentType' | 'identify' | 'trustedProxies' | 'forwardedHeader'

export type TrpcOptions<Context, PolicyName extends string, TierName extends string> = (
  | Omit<LimiterOptions<ProcedureCall<Context>, PolicyName, TierName>, Elsewhere>
  | Omit<GateOptions<ProcedureCall<Context>, TierName>, Elsewhere>
) & { readonly subject: unknown }

/** Middleware of a procedure: `t.procedure.use(limited)`. */
export type TrpcMiddleware<Context> = <Result>(
  call: ProcedureCall<Context> & { readonly next: () => Promise<Result> },
) => Promise<Result>

/** Why a call was refused; the `cause` of its `TRPCError`. */
export class RateLimitError extends Error {
  override readonly name = 'RateLimitError'

  constructor(
    readonly problem: ProblemBody,
    /** The headers that an HTTP response to the call would carry. */
    readonly headers: readonly HeaderField[],
  ) {
    super(problem.detail)
  }
}

const framework: Framework<ProcedureCall<unknown>> = {
  knowsPeer: false,
  read: ({ type, path }): HttpRequest => ({
    method: type === 'mutation' ? 'POST' : 'GET',
    url: `/${path}`,
    route: path,
    peer: undefined,
    header: () => undefined,
  }),
  // The calls of a batch share their context; this is each one's own, whichever middleware it is in.
  origin: ({ getRawInput }) => getRawInput,
}

/**
 * Middleware that limits tRPC procedures. A call that is denied fails with `TOO_MANY_REQUESTS`, or with
 * `SERVICE_UNAVAILABLE` where the failure mode is `closed`; `rateLimitOf` tells what to say about it.
 *
 * @example
 * const limited = t.procedure.use(rateLimit({ limiter, policy: 'api', subject: ({ ctx }) => `user:${ctx.userId}` }))
 */
export function rateLimit<Context, PolicyName extends string, TierName extends string>(
  options: TrpcOptions<Context, PolicyName, TierName>,
): TrpcMiddleware<Context> {
  const enforce = createEnforce(options as object as AnyOptions<ProcedureCall<unknown>>, framework)
  return async call => {
    const outcome = await enforce(call)
    if (outcome.allowed) return endAfter(outcome.ended, call.next)
    throw errorOf(outcome)
  }
}

function errorOf({ status, headers, body }: Refused): TRPCError {
  const cause = new RateLimitError(
    JSON.parse(body),
    // The response has a body of tRPC's own.
    headers.filter(([name]) => name !== 'Content-Type'),
  )
  return new TRPCError({ code: status === 429 ? 'TOO_MANY_REQUESTS' : 'SERVICE_UNAVAILABLE', cause })
}

/** The problem of a refusal, for `errorFormatter`; null for any other error. */
export function rateLimitOf({ cause }: TRPCError): ProblemBody | null {
  return cause instanceof RateLimitError ? cause.problem : null
}

/** Headers of the refusal that takes longest to pass, for `responseMeta`; none where nothing was refused. */
export function rateLimitHeaders(errors: readonly TRPCError[]): Record<string, string> {
  const refusals = errors.flatMap(({ cause }) => (cause instanceof RateLimitError ? [cause] : []))
  const waitMs = ({ problem }: RateLimitError) => problem.retryAfterMs ?? Number.POSITIVE_INFINITY
  const longest = refusals.toSorted((one, other) => waitMs(other) - waitMs(one))[0]
  return Object.fromEntries(longest?.headers ?? [])
}
