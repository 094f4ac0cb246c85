import type { Ask } from '../ask.js'
import type { Decision } from '../decision/decision.js'
import { decisionHeaders, type HeaderOptions } from '../decision/headers.js'
import { decisionProblem } from '../decision/problem.js'
import { unexpected } from '../errors.js'
import type { Limiter } from '../limiter.js'
import type { SubjectInput } from '../subject/subject.js'

/** Anything that answers a `Request` with a `Response`, with whatever else the runtime hands it. */
type Handler<Rest extends readonly unknown[]> = (
  request: Request,
  ...rest: Rest
) => Response | Promise<Response>

type Maybe<T> = T | Promise<T>

export type FetchOptions<PolicyName extends string, TierName extends string> = Omit<
  Ask<PolicyName, TierName>,
  'policy' | 'tier' | 'cost'
> & {
  readonly limiter: Limiter<PolicyName, TierName>
  /** Who is asking. The address of a client is the runtime's to say: no header of the request is believed. */
  readonly subject: (request: Request) => Maybe<SubjectInput>
  /** This, or `tier`. */
  readonly policy?: NoInfer<PolicyName>
  readonly tier?: NoInfer<TierName> | ((request: Request) => Maybe<NoInfer<TierName>>)
  readonly cost?: number | ((request: Request) => Maybe<number>)
  readonly headers?: HeaderOptions
  /** Told when the limiter could not decide; the request passes then. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
}

/**
 * Limits a fetch handler: denied requests are answered with 429 and `application/problem+json` before the handler runs,
 * all others get the decision's headers. A fault of the limiter lets the request pass; it never becomes a 500.
 *
 * @example
 * const limited = rateLimit({ limiter, policy: 'api', subject: () => `user:${userId}` })
 * export default { fetch: limited(request => new Response('hello')) }
 */
export function rateLimit<PolicyName extends string, TierName extends string>(
  options: FetchOptions<PolicyName, TierName>,
): <Rest extends readonly unknown[]>(
  handler: Handler<Rest>,
) => (request: Request, ...rest: Rest) => Promise<Response> {
  refuseMistakes(options)
  return handler =>
    async (request, ...rest) => {
      const decision = await decide(options, request)
      if (decision === null) return handler(request, ...rest)
      const headers = decisionHeaders(decision, options.headers)
      return decision.allowed
        ? withHeaders(await handler(request, ...rest), headers)
        : refusal(decision, headers)
    }
}

/** At the start, because a handler that cannot be limited lets every request pass. */
function refuseMistakes<PolicyName extends string, TierName extends string>(
  options: FetchOptions<PolicyName, TierName>,
): void {
  const refuse = (field: string, expected: string, got: unknown): never => {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', field, expected, got)
  }
  const { limiter, subject, policy, tier } = options ?? {}
  if (typeof limiter?.check !== 'function') refuse('limiter', 'what createLimiter() returns', limiter)
  if (typeof subject !== 'function') refuse('subject', 'a function of the request', subject)
  if ((policy === undefined) === (tier === undefined)) {
    refuse('policy', 'either a policy or a tier', policy === undefined ? 'neither' : 'both')
  }
  if (policy !== undefined && !limiter.policyNames.includes(policy)) {
    refuse('policy', `one of ${limiter.policyNames.join(', ') || 'none'}`, policy)
  }
  if (typeof tier === 'string' && !limiter.tierNames.includes(tier)) {
    refuse('tier', `one of ${limiter.tierNames.join(', ') || 'none'}`, tier)
  }
}

async function decide<PolicyName extends string, TierName extends string>(
  options: FetchOptions<PolicyName, TierName>,
  request: Request,
): Promise<Decision | null> {
  const { limiter, subject, policy, tier, cost, scope, onStoreFailure } = options
  try {
    const ask = {
      ...(policy === undefined
        ? { tier: typeof tier === 'function' ? await tier(request) : tier }
        : { policy }),
      ...(scope !== undefined && { scope }),
      ...(cost !== undefined && { cost: typeof cost === 'function' ? await cost(request) : cost }),
      ...(onStoreFailure !== undefined && { onStoreFailure }),
    }
    return await limiter.check(await subject(request), ask as Ask<PolicyName, TierName>)
  } catch (error) {
    report(error, options.onError)
    return null
  }
}

function report(error: unknown, onError: (error: unknown) => void = console.error): void {
  try {
    onError(error)
  } catch {
    // A reporter that throws has failed at reporting; the request passes all the same.
  }
}

/** A copy: the headers of a response that was fetched cannot be changed. */
function withHeaders(response: Response, headers: readonly (readonly [string, string])[]): Response {
  const copy = new Response(response.body, response)
  for (const [name, value] of headers) copy.headers.set(name, value)
  return copy
}

function refusal(decision: Decision, headers: readonly (readonly [string, string])[]): Response {
  const problem = decisionProblem(decision)
  const response = new Response(JSON.stringify(problem.body), { status: problem.status })
  for (const [name, value] of [...headers, ...problem.headers]) response.headers.set(name, value)
  return response
}
