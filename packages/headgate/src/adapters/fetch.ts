import type { HeaderField } from '../decision/headers.js'
import type { HttpRequest } from '../subject/http-request.js'
import { createEnforce, type Framework, isLastDecision, type Rejected } from './enforce.js'
import { limiterOptions } from './inline-limit.js'
import type { AnyLimiterOptions, AnyOptions, NamesCaller, RateLimitOptions } from './options.js'
import { endIfThrown, endWhenRead } from './response-end.js'

/** A function that answers a `Request`, with further arguments of the runtime. */
export type Handler<Native extends Request, Rest extends readonly unknown[]> = (
  request: Native,
  ...rest: Rest
) => Response | Promise<Response>

/** A `Request` does not reveal who is connected, so `subject` or `identify` is required. */
export type FetchOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  Request,
  PolicyName,
  TierName
> &
  NamesCaller

const fetchFramework: Framework<Request> = {
  knowsPeer: false,
  read: request => new FetchRequest(request),
  origin: request => request,
}

/**
 * Limits a fetch handler: a denied request is answered before the handler runs, and all others get the decision's
 * headers. A fault of the limiter never becomes a 500: the failure mode decides.
 *
 * @example
 * const limited = rateLimit({ limiter, policy: 'api', subject: () => `user:${userId}` })
 * export default { fetch: limited(request => new Response('hello')) }
 */
export function rateLimit<PolicyName extends string, TierName extends string>(
  options: FetchOptions<PolicyName, TierName>,
): <Rest extends readonly unknown[]>(
  handler: Handler<Request, Rest>,
) => (request: Request, ...rest: Rest) => Promise<Response> {
  const limitHandler = createLimitHandler(options as AnyOptions<Request>, fetchFramework)
  return handler => limitHandler(handler)
}

/** Creates the function that wraps a handler, which then runs only for requests that pass. */
export function createLimitHandler<Native extends Request>(
  options: AnyOptions<Native>,
  framework: Framework<Native>,
): <Rest extends readonly unknown[]>(
  handler: Handler<Native, Rest>,
) => (request: Native, ...rest: Rest) => Promise<Response> {
  const resolved = limiterOptions(options, framework)
  const enforce = createEnforce(resolved, framework)
  const keepAlive = createKeepAlive(resolved)
  return handler =>
    async (request, ...rest) => {
      const outcome = await enforce(request)
      keepAlive(() => rest.find(isLifetime))
      if (!outcome.allowed) return rejectionResponse(outcome)
      const { decision, headers, ended } = outcome
      const response = await endIfThrown(ended, () => handler(request, ...rest))
      const told = isLastDecision(request, decision) ? withHeaders(response, headers) : response
      return endWhenRead(ended, told)
    }
}

/**
 * Copies the response, because the headers of a fetched one are immutable. One that cannot be copied, such as the
 * 101 of a WebSocket, is returned as it is.
 */
function withHeaders(response: Response, headers: readonly HeaderField[]): Response {
  if (headers.length === 0) return response
  try {
    const copy = new Response(response.body, response)
    for (const [name, value] of headers) copy.headers.set(name, value)
    return copy
  } catch {
    return response
  }
}

/** Converts a rejection to a `Response`. */
function rejectionResponse({ status, headers, body }: Rejected): Response {
  return new Response(body, { status, headers: headers as [string, string][] })
}

/** Shows a `Request` to the core. `url` overrides the request's own target. */
export class FetchRequest implements HttpRequest {
  readonly peer = undefined
  readonly route = undefined

  constructor(
    private readonly request: Request,
    readonly url: string = request.url,
  ) {}

  get method(): string {
    return this.request.method
  }

  get signal(): AbortSignal {
    return this.request.signal
  }

  header(name: string): string | undefined {
    return this.request.headers.get(name) ?? undefined
  }
}

/** The part of a runtime's context that keeps work alive after the response. */
interface Lifetime {
  waitUntil(work: Promise<unknown>): void
}

/**
 * Creates the function that tells a runtime about work still in flight after a decision, such as a call that missed
 * its deadline. Otherwise the runtime would cut it off with the response, along with everybody who shares the call.
 */
export function createKeepAlive<Native>({
  limiter,
}: AnyLimiterOptions<Native>): (given: () => unknown) => void {
  return given => {
    const work = limiter?.pending?.() ?? null
    if (work === null) return
    const lifetime = given()
    if (isLifetime(lifetime)) lifetime.waitUntil(work)
  }
}

function isLifetime(given: unknown): given is Lifetime {
  return typeof given === 'object' && given !== null && 'waitUntil' in given
}
