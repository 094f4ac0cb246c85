import { TRPCError } from '@trpc/server'
import type { HeaderField } from '../decision/headers.js'
import type { ProblemBody } from '../decision/problem.js'
import type { HttpRequest } from '../subject/http-request.js'
import { createEnforce, type Framework, type Rejected } from './enforce.js'
import type { AnyOptions, RateLimitOptions, Without } from './options.js'
import { endAfter } from './response-end.js'

/** A call of a procedure, as tRPC shows it to middleware. */
export interface ProcedureCall<Context> {
  readonly ctx: Context
  readonly path: string
  readonly type: 'query' | 'mutation' | 'subscription'
  /** Null or undefined before an input parser of the procedure has run. */
  readonly input: unknown
  readonly getRawInput: () => Promise<unknown>
  /** Aborted when the client leaves. */
  readonly signal?: AbortSignal | undefined
}

/** Options that do not apply, because tRPC does not reveal the peer and answers in its own format. */
type Elsewhere = 'body' | 'contentType' | 'identify' | 'trustedProxies' | 'forwardedHeader'

export type TrpcOptions<Context, PolicyName extends string, TierName extends string> = Without<
  RateLimitOptions<ProcedureCall<Context>, PolicyName, TierName>,
  Elsewhere
> & { readonly subject: unknown }

/** Middleware of a procedure: `t.procedure.use(limited)`. */
export type TrpcMiddleware<Context> = <Result>(
  call: ProcedureCall<Context> & { readonly next: () => Promise<Result> },
) => Promise<Result>

/** The `cause` of the `TRPCError` of a rejected call. */
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
  read: ({ type, path, signal }): HttpRequest => ({
    method: type === 'mutation' ? 'POST' : 'GET',
    url: `/${path}`,
    route: path,
    peer: undefined,
    signal,
    header: () => undefined,
  }),
  // The calls of a batch share their context; this function is unique to each call, and the same in every
  // middleware.
  origin: ({ getRawInput }) => getRawInput,
  standsOn: ({ path }) => path,
}

/**
 * Creates middleware that limits tRPC procedures. A denied call fails with `TOO_MANY_REQUESTS`, or with
 * `SERVICE_UNAVAILABLE` if the failure mode is `closed`; `rateLimitOf` returns the details.
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

function errorOf({ status, headers, body }: Rejected): TRPCError {
  const cause = new RateLimitError(
    JSON.parse(body),
    // The response has tRPC's own body.
    headers.filter(([name]) => name !== 'Content-Type'),
  )
  return new TRPCError({ code: status === 429 ? 'TOO_MANY_REQUESTS' : 'SERVICE_UNAVAILABLE', cause })
}

/** Returns the problem of a rejection, for `errorFormatter`; null for any other error. */
export function rateLimitOf({ cause }: TRPCError): ProblemBody | null {
  return cause instanceof RateLimitError ? cause.problem : null
}

/** Returns the headers of the rejection with the longest wait, for `responseMeta`; empty if nothing was rejected. */
export function rateLimitHeaders(errors: readonly TRPCError[]): Record<string, string> {
  const rejections = errors.flatMap(({ cause }) => (cause instanceof RateLimitError ? [cause] : []))
  const waitMs = ({ problem }: RateLimitError) => problem.retryAfterMs ?? Number.POSITIVE_INFINITY
  const longest = rejections.toSorted((one, other) => waitMs(other) - waitMs(one))[0]
  return Object.fromEntries(longest?.headers ?? [])
}
