import type { Context, Middleware, Next } from 'koa'
import { isPromise } from '../subject/sources.js'
import { createEnforce, type Framework, type Outcome } from './enforce.js'
import { hasLongBody, NodeRequest, routeText, sendRejection } from './node.js'
import type { AnyOptions, RateLimitOptions } from './options.js'
import { endOnClose } from './response-end.js'

export type KoaOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  Context,
  PolicyName,
  TierName
>

const framework: Framework<Context> = {
  knowsPeer: true,
  // Set by @koa/router.
  read: ctx => new NodeRequest(ctx.req, ctx.originalUrl, () => routeText(ctx._matchedRoute)),
  origin: ctx => ctx.req,
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
