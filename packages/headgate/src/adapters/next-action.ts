import { headers } from 'next/headers.js'
import type { Decision } from '../decision/decision.js'
import type { ProblemBody } from '../decision/problem.js'
import { unexpected } from '../errors/headgate-error.js'
import type { HttpRequest } from '../subject/http-request.js'
import { createEnforce, type Framework, type Refused } from './enforce.js'
import type { AnyOptions, LimiterOptions, NamesCaller } from './options.js'
import { endAfter } from './response-end.js'

/** A call of a server action. */
export interface ActionCall<Args extends readonly unknown[] = readonly unknown[]> {
  /** Of the request that made the call. */
  readonly headers: Pick<Headers, 'get' | 'has'>
  readonly args: Args
}

/** Next.js tells an action neither who is connected nor a path: `subject` or `identify` must be given, and there is no gate. */
export type ActionOptions<
  Args extends readonly unknown[],
  PolicyName extends string,
  TierName extends string,
  Refusal,
> = Omit<
  LimiterOptions<ActionCall<Args>, PolicyName, TierName>,
  'body' | 'contentType' | 'perRoute' | 'trustedProxies' | 'forwardedHeader'
> &
  NamesCaller & {
    /** Makes the return value of a denied call. Default: the problem of the denial. */
    readonly body?: (decision: Decision, call: ActionCall<Args>) => Refusal
  }

const framework: Framework<ActionCall> = {
  knowsPeer: false,
  read: call => new ActionRequest(call),
  origin: call => call,
}

/**
 * Limits a server action. An action has no status to answer with: a call that is denied returns the problem of the
 * denial, whose `status` is 429 or 503, or what `body` makes of it.
 *
 * @example
 * export const login = limitAction(checkPassword, { limiter, policy: 'login', subject })
 */
export function limitAction<
  Args extends readonly unknown[],
  Result,
  PolicyName extends string,
  TierName extends string,
  Refusal = ProblemBody,
>(
  action: (...args: Args) => Promise<Result>,
  options: ActionOptions<Args, PolicyName, TierName, Refusal>,
): (...args: Args) => Promise<Result | Refusal | ProblemBody> {
  const any = options as object as AnyOptions<ActionCall>
  if (any?.gate !== undefined)
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'gate', 'a limiter: an action has no path', any.gate)
  const enforce = createEnforce(any, framework)
  return async (...args) => {
    const outcome = await enforce({ headers: await headers(), args })
    if (!outcome.allowed) return toValue(outcome)
    return endAfter(outcome.ended, () => action(...args))
  }
}

/** A body as a value again: the core writes text as it is and everything else as JSON. */
function toValue<Refusal>({ headers, body }: Refused): Refusal {
  const isText = headers.some(([name, value]) => name === 'Content-Type' && value.startsWith('text/'))
  return isText ? (body as Refusal) : JSON.parse(body)
}

class ActionRequest implements HttpRequest {
  readonly method = 'POST'
  readonly url = ''
  readonly peer = undefined
  readonly route = undefined

  constructor(private readonly call: ActionCall) {}

  /** A form that is sent without JavaScript asks for a page, but what is returned here is a value. */
  header(name: string): string | undefined {
    return name === 'accept' ? undefined : (this.call.headers.get(name) ?? undefined)
  }
}
