import { headers } from 'next/headers.js'
import type { Decision } from '../decision/decision.js'
import type { ProblemBody } from '../decision/problem.js'
import { invalidOption } from '../errors/headgate-error.js'
import type { HttpRequest } from '../subject/http-request.js'
import { createEnforce, type Framework, type Rejected } from './enforce.js'
import type { AnyOptions, NamesCaller, RateLimitOptions, Without } from './options.js'
import { endAfter } from './response-end.js'

/** A call of a server action. */
export interface ActionCall<Args extends readonly unknown[] = readonly unknown[]> {
  /** The headers of the request that made the call. */
  readonly headers: Pick<Headers, 'get' | 'has'>
  readonly args: Args
}

/**
 * Options for server actions. Next.js reveals neither the peer nor a path, so `subject` or `identify` is required
 * and a policy is named: rules have nothing to look at.
 */
export type ActionOptions<
  Args extends readonly unknown[],
  PolicyName extends string,
  TierName extends string,
  Rejection,
> = Without<
  RateLimitOptions<ActionCall<Args>, PolicyName, TierName>,
  'body' | 'contentType' | 'perRoute' | 'trustedProxies' | 'forwardedHeader'
> &
  NamesCaller & {
    /** Returns the value of a denied call. Default: the problem of the denial. */
    readonly body?: (decision: Decision, call: ActionCall<Args>) => Rejection
  }

const framework: Framework<ActionCall> = {
  knowsPeer: false,
  read: call => new ActionRequest(call),
  origin: call => call,
}

/**
 * Limits a server action. An action has no status to answer with, so a denied call returns the problem of the denial,
 * whose `status` is 429 or 503, or what `body` makes of it.
 *
 * @example
 * export const login = limitAction(checkPassword, { limiter, policy: 'login', subject })
 */
export function limitAction<
  Args extends readonly unknown[],
  Result,
  PolicyName extends string,
  TierName extends string,
  Rejection = ProblemBody,
>(
  action: (...args: Args) => Promise<Result>,
  options: ActionOptions<Args, PolicyName, TierName, Rejection>,
): (...args: Args) => Promise<Result | Rejection | ProblemBody> {
  const any = options as object as AnyOptions<ActionCall>
  if (any?.limiter?.hasRules && any.policy === undefined)
    throw invalidOption('policy', 'one by name: an action has no path for rules', undefined)
  const enforce = createEnforce(any, framework)
  return async (...args) => {
    const outcome = await enforce({ headers: await headers(), args })
    if (!outcome.allowed) return toValue(outcome)
    return endAfter(outcome.ended, () => action(...args))
  }
}

/** Converts a body back to a value: the core writes text as it is and everything else as JSON. */
function toValue<Rejection>({ headers, body }: Rejected): Rejection {
  const isText = headers.some(([name, value]) => name === 'Content-Type' && value.startsWith('text/'))
  return isText ? (body as Rejection) : JSON.parse(body)
}

class ActionRequest implements HttpRequest {
  readonly method = 'POST'
  readonly url = ''
  readonly peer = undefined
  readonly route = undefined

  constructor(private readonly call: ActionCall) {}

  /** Hides `accept`: a form sent without JavaScript asks for a page, but the result here is a value. */
  header(name: string): string | undefined {
    return name === 'accept' ? undefined : (this.call.headers.get(name) ?? undefined)
  }
}
