import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Decision } from '../decision/decision.js'
import type { HeaderField } from '../decision/headers.js'
import type { HttpRequest } from '../subject/http-request.js'
import { isPromise } from '../subject/sources.js'
import { createEnforce, type Framework, type Outcome, type Passed } from './enforce.js'
import { createKeepAlive } from './fetch.js'
import { limiterOptions } from './inline-limit.js'
import { hasLongBody, inLowerCase, NodeRequest } from './node.js'
import type { AnyOptions, RateLimitOptions } from './options.js'
import { endOnClose, endWhenRead } from './response-end.js'

export type HonoOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  Context,
  PolicyName,
  TierName
>

declare module 'hono' {
  interface ContextVariableMap {
    /** The decision of the innermost limiter; absent if the request is not limited. */
    rateLimit?: Decision
  }
}

const framework: Framework<Context> = {
  knowsPeer: true,
  read(context) {
    const incoming = incomingOf(context)
    // Node's own headers, because a `Request` builds its headers on first access.
    return incoming === undefined ? new HonoRequest(context) : new HonoNodeRequest(incoming, context)
  },
  origin: context => context,
  standsOn({ req }) {
    const path = req.matchedRoutes[req.routeIndex]?.path
    return path?.endsWith('*') ? undefined : path
  },
}

/**
 * Creates middleware that limits a Hono app or a route.
 *
 * @example
 * app.use(rateLimit({ limiter, policy: 'api' }))
 */
export function rateLimit<PolicyName extends string, TierName extends string>(
  options: HonoOptions<PolicyName, TierName>,
): MiddlewareHandler {
  const resolved = limiterOptions(options as AnyOptions<Context>, framework)
  const enforce = createEnforce(resolved, framework)
  const keepAlive = createKeepAlive(resolved)
  return (context, next) => {
    const outcome = enforce(context)
    if (!isPromise(outcome)) return applyOutcome(outcome, context, next)
    return outcome.then(known => {
      keepAlive(() => lifetimeOf(context))
      return applyOutcome(known, context, next)
    })
  }
}

function applyOutcome(outcome: Outcome, context: Context, next: Next): Promise<Response | undefined> {
  if (outcome.decision !== null) context.set('rateLimit', outcome.decision)
  if (!outcome.allowed) return Promise.resolve(reject(context, outcome))
  const { headers, ended } = outcome
  if (ended !== null) return passToEnd(context, next, outcome)
  if (headers.length === 0) return next() as Promise<undefined>
  const outgoing: ServerResponse | undefined = context.env?.outgoing
  if (outgoing !== undefined && !outgoing.headersSent) {
    // Whatever response the handler makes is written with these: reading its headers, to see whether they are there,
    // would cost more than the decision.
    for (const field of headers) outgoing.setHeader(inLowerCase(field[0]), field[1])
    return next() as Promise<undefined>
  }
  for (const [name, value] of headers) context.header(name, value)
  return next().then(() => addMissing(context, headers))
}

/** Continues a request whose end must be noticed; on Node the connection reports it. */
async function passToEnd(context: Context, next: Next, { ended, headers }: Passed): Promise<undefined> {
  const outgoing: ServerResponse | undefined = context.env?.outgoing
  if (outgoing !== undefined) endOnClose(ended, outgoing)
  for (const [name, value] of headers) context.header(name, value)
  try {
    await next()
  } catch (error) {
    ended?.(null)
    throw error
  }
  addMissing(context, headers)
  if (outgoing === undefined) context.res = endWhenRead(ended, context.res)
}

/** A response that the handler built itself lacks the headers set on the context before. */
function addMissing(context: Context, headers: readonly HeaderField[]): undefined {
  const [first] = headers
  if (first === undefined || context.res.headers.has(first[0])) return
  for (const [name, value] of headers) context.header(name, value)
}

function reject(context: Context, outcome: Extract<Outcome, { allowed: false }>): Response {
  const incoming = incomingOf(context)
  // The rest of a long body is not read.
  const close: HeaderField[] =
    incoming !== undefined && hasLongBody(incoming) ? [['Connection', 'close']] : []
  return context.newResponse(outcome.body, {
    status: outcome.status,
    headers: Object.fromEntries([...outcome.headers, ...close]),
  })
}

/** Returns the Node request behind a context of @hono/node-server. */
function incomingOf({ env }: Context): IncomingMessage | undefined {
  return env?.incoming
}

/** Returns the runtime's execution context; Hono throws if there is none. */
function lifetimeOf(context: Context): unknown {
  try {
    return context.executionCtx
  } catch {
    return undefined
  }
}

/** Returns the pattern of the last handler, which comes after every middleware. */
function routeOf({ req }: Context): string | undefined {
  return req.matchedRoutes.at(-1)?.path
}

class HonoNodeRequest extends NodeRequest {
  constructor(
    incoming: IncomingMessage,
    private readonly context: Context,
  ) {
    super(incoming)
  }

  override get route(): string | undefined {
    return routeOf(this.context)
  }
}

/** Shows a request outside Node to the core. */
class HonoRequest implements HttpRequest {
  /** Outside Node, Hono does not say who is connected. */
  readonly peer = undefined

  constructor(private readonly context: Context) {}

  get method(): string {
    return this.context.req.method
  }

  get url(): string {
    return this.context.req.url
  }

  get route(): string | undefined {
    return routeOf(this.context)
  }

  get signal(): AbortSignal | undefined {
    return this.context.req.raw.signal
  }

  header(name: string): string | undefined {
    return this.context.req.header(name)
  }
}
