import type { Context, Middleware, Next } from 'koa'
import type { Decision } from '../decision/decision.js'
import { type FrameworkTrust, trustByHops } from '../subject/client-address.js'
import { isPromise } from '../subject/sources.js'
import { createEnforce, type Framework, type Outcome } from './enforce.js'
import { hasLongBody, NodeRequest, readOnce, routeText, sendRejection } from './node.js'
import type { AnyOptions, RateLimitOptions } from './options.js'
import { endOnClose } from './response-end.js'

export type KoaOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  Context,
  PolicyName,
  TierName
>

declare module 'koa' {
  interface DefaultState {
    /** The decision of the innermost limiter; absent if the request is not limited. */
    rateLimit?: Decision
  }
}

const framework: Framework<Context> = {
  knowsPeer: true,
  read: ctx => new KoaRequest(ctx),
  origin: ctx => ctx.req,
  standsOn: ctx => routeText(ctx._matchedRoute),
}

/** `proxy: true` believes the leftmost address unless `maxIpsCount` says how many proxies have written one. */
const trustOf = readOnce(
  ({ proxy, proxyIpHeader, maxIpsCount }: Context['app']): FrameworkTrust | undefined => {
    if (!proxy) return undefined
    const isBounded = maxIpsCount > 0 && proxyIpHeader.toLowerCase() === 'x-forwarded-for'
    return isBounded ? trustByHops(maxIpsCount) : 'everybody'
  },
)

class KoaRequest extends NodeRequest {
  constructor(private readonly ctx: Context) {
    super(ctx.req)
  }

  override get url(): string {
    return this.ctx.originalUrl
  }

  /** Set by @koa/router. */
  override get route(): string | undefined {
    return routeText(this.ctx._matchedRoute)
  }

  override get trust(): FrameworkTrust | undefined {
    return trustOf(this.ctx.app)
  }
}

/**
 * Creates middleware that limits a Koa app or a router.
 *
 * @example
 * app.use(rateLimit({ limiter, policy: 'api' }))
 */
export function rateLimit<PolicyName extends string, TierName extends string>(
  options: KoaOptions<PolicyName, TierName>,
): Middleware {
  const enforce = createEnforce(options as AnyOptions<Context>, framework)
  return (ctx, next) => {
    const outcome = enforce(ctx)
    return isPromise(outcome)
      ? outcome.then(known => applyOutcome(known, ctx, next))
      : applyOutcome(outcome, ctx, next)
  }
}

function applyOutcome(outcome: Outcome, ctx: Context, next: Next): Promise<unknown> | undefined {
  if (outcome.decision !== null) ctx.state.rateLimit = outcome.decision
  for (const [name, value] of outcome.headers) ctx.set(name, value)
  if (outcome.allowed) {
    endOnClose(outcome.ended, ctx.res)
    return next()
  }
  if (ctx.headerSent || hasLongBody(ctx.req)) {
    // Bypasses Koa, which would end the response before the client has stopped sending.
    ctx.respond = false
    sendRejection(ctx.req, ctx.res, outcome)
    return
  }
  ctx.status = outcome.status
  ctx.body = outcome.body
  return
}
