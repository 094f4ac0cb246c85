import type { Ask } from '../ask.js'
import type { Decision } from '../decision/decision.js'
import type { HeaderField } from '../decision/header-field.js'
import { decisionHeaders, type HeaderOptions } from '../decision/headers.js'
import { decisionProblem } from '../decision/problem.js'
import { unexpected } from '../errors.js'
import type { Gate } from '../gate/gate.js'
import type { Limiter } from '../limiter.js'
import { claimedMethod } from '../policy/claimed-method.js'
import type { RequestFacts } from '../policy/request-facts.js'
import type { SubjectInput } from '../subject/subject.js'

/** Anything that answers a `Request` with a `Response`, with whatever else the runtime hands it. */
type Handler<Rest extends readonly unknown[]> = (
  request: Request,
  ...rest: Rest
) => Response | Promise<Response>

type Maybe<T> = T | Promise<T>

interface CommonOptions {
  readonly cost?: number | ((request: Request) => Maybe<number>)
  readonly headers?: HeaderOptions
  /** Told when something of the limiter threw; the failure mode decides then. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
}

/** Limits named here. */
export type FetchOptions<PolicyName extends string, TierName extends string> = Omit<
  Ask<PolicyName, TierName>,
  'policy' | 'tier' | 'cost'
> &
  CommonOptions & {
    readonly limiter: Limiter<PolicyName, TierName>
    readonly gate?: undefined
    /** Who is asking. The address of a client is the runtime's to say: no header of the request is believed. */
    readonly subject: (request: Request) => Maybe<SubjectInput>
    /** This, or `tier`. */
    readonly policy?: NoInfer<PolicyName>
    readonly tier?: NoInfer<TierName> | ((request: Request) => Maybe<NoInfer<TierName>>)
  }

/** Limits found by the rules of a policy file. */
export interface GateFetchOptions extends CommonOptions {
  readonly gate: Gate
  readonly limiter?: undefined
  /** Who is asking, from the most specific to the least, or one alone. No header of the request is believed. */
  readonly subject: (request: Request) => Maybe<RequestFacts['subject']>
  /** The caller's tier, where a session or a key has told it. */
  readonly tier?: (request: Request) => Maybe<string | undefined>
}

/**
 * Limits a fetch handler: denied requests are answered with 429 and `application/problem+json` before the handler runs,
 * all others get the decision's headers. A fault of the limiter never becomes a 500: the failure mode decides, so that a
 * request passes, or gets 503 where that is `closed`.
 *
 * @example
 * const limited = rateLimit({ limiter, policy: 'api', subject: () => `user:${userId}` })
 * export default { fetch: limited(request => new Response('hello')) }
 */
export function rateLimit<PolicyName extends string, TierName extends string>(
  options: FetchOptions<PolicyName, TierName> | GateFetchOptions,
): <Rest extends readonly unknown[]>(
  handler: Handler<Rest>,
) => (request: Request, ...rest: Rest) => Promise<Response> {
  refuseMistakes(options)
  const ask: (request: Request) => Promise<Decision> =
    options.gate === undefined
      ? request => askLimiter(options, request)
      : request => askGate(options as GateFetchOptions, request)
  return handler =>
    async (request, ...rest) => {
      const { decision, headers } = await decide(ask, request, options)
      return decision.allowed
        ? withHeaders(await handler(request, ...rest), headers)
        : refusal(decision, headers)
    }
}

/** At the start, because a handler that cannot be limited lets every request pass. */
function refuseMistakes<PolicyName extends string, TierName extends string>(
  options: FetchOptions<PolicyName, TierName> | GateFetchOptions,
): void {
  const refuse = (field: string, expected: string, got: unknown): never => {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', field, expected, got)
  }
  const { limiter, gate, subject } = options ?? {}
  if (typeof subject !== 'function') refuse('subject', 'a function of the request', subject)
  if (gate !== undefined) {
    if (typeof gate?.request !== 'function') refuse('gate', 'what createGate() returns', gate)
    return
  }
  if (typeof limiter?.check !== 'function') refuse('limiter', 'what createLimiter() returns', limiter)
  const { policy, tier } = options as FetchOptions<PolicyName, TierName>
  const { policyNames, tierNames } = limiter as Limiter<PolicyName, TierName>
  if ((policy === undefined) === (tier === undefined)) {
    refuse('policy', 'either a policy or a tier', policy === undefined ? 'neither' : 'both')
  }
  if (policy !== undefined && !policyNames.includes(policy)) {
    refuse('policy', `one of ${policyNames.join(', ') || 'none'}`, policy)
  }
  if (typeof tier === 'string' && !tierNames.includes(tier)) {
    refuse('tier', `one of ${tierNames.join(', ') || 'none'}`, tier)
  }
}

interface Decided {
  readonly decision: Decision
  readonly headers: readonly HeaderField[]
}

async function decide<PolicyName extends string, TierName extends string>(
  ask: (request: Request) => Promise<Decision>,
  request: Request,
  options: FetchOptions<PolicyName, TierName> | GateFetchOptions,
): Promise<Decided> {
  try {
    const decision = await ask(request)
    return { decision, headers: decisionHeaders(decision, options.headers) }
  } catch (error) {
    report(error, options.onError)
    const decision = decideFault(options, request)
    return { decision, headers: decisionHeaders(decision) }
  }
}

function decideFault<PolicyName extends string, TierName extends string>(
  options: FetchOptions<PolicyName, TierName> | GateFetchOptions,
  { method, url }: Request,
): Decision {
  if (options.gate !== undefined) return options.gate.decideFault({ method, path: url })
  const { limiter, onStoreFailure } = options
  return limiter.decideFault(onStoreFailure === undefined ? {} : { onStoreFailure })
}

async function askLimiter<PolicyName extends string, TierName extends string>(
  options: FetchOptions<PolicyName, TierName>,
  request: Request,
): Promise<Decision> {
  const { limiter, subject, policy, tier, scope, onStoreFailure } = options
  const cost = await costOf(options, request)
  const ask = {
    ...(policy === undefined
      ? { tier: typeof tier === 'function' ? await tier(request) : tier }
      : { policy }),
    ...(scope !== undefined && { scope }),
    ...(cost !== undefined && { cost }),
    ...(onStoreFailure !== undefined && { onStoreFailure }),
  }
  return limiter.check(await subject(request), ask as Ask<PolicyName, TierName>)
}

async function askGate(options: GateFetchOptions, request: Request): Promise<Decision> {
  const tier = await options.tier?.(request)
  const cost = await costOf(options, request)
  return options.gate.request({
    subject: await options.subject(request),
    method: request.method,
    ...claimOf(request),
    path: request.url,
    ...(tier !== undefined && { tier }),
    ...(cost !== undefined && { cost }),
  })
}

function claimOf({ headers, url }: Request): { claimedMethod?: string } {
  const claimed = claimedMethod(name => headers.get(name), url)
  return claimed === undefined ? {} : { claimedMethod: claimed }
}

function costOf({ cost }: CommonOptions, request: Request): Maybe<number> | undefined {
  return typeof cost === 'function' ? cost(request) : cost
}

function report(error: unknown, onError: (error: unknown) => void = console.error): void {
  try {
    onError(error)
  } catch {
    // A reporter that throws has failed at reporting; the failure mode decides all the same.
  }
}

/**
 * A copy: the headers of a response that was fetched cannot be changed. One that cannot be copied, such as the 101 of a
 * WebSocket, goes out as it is.
 */
function withHeaders(response: Response, headers: readonly HeaderField[]): Response {
  try {
    const copy = new Response(response.body, response)
    for (const [name, value] of headers) copy.headers.set(name, value)
    return copy
  } catch {
    return response
  }
}

function refusal(decision: Decision, headers: readonly HeaderField[]): Response {
  const problem = decisionProblem(decision)
  const response = new Response(JSON.stringify(problem.body), { status: problem.status })
  for (const [name, value] of [...headers, ...problem.headers]) response.headers.set(name, value)
  return response
}
