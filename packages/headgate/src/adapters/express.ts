import type { Request, RequestHandler } from 'express'
import { createEnforce, type Framework } from './enforce.js'
import { applyOutcome, NodeRequest, routeText } from './node.js'
import type { AnyOptions, RateLimitOptions } from './options.js'

export type ExpressOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  Request,
  PolicyName,
  TierName
>

/** Converts a request of Express. */
export const framework: Framework<Request> = {
  knowsPeer: true,
  // Without the mount path, which is in the client's spelling and may contain its ids.
  read: req => new NodeRequest(req, req.originalUrl ?? req.url, () => routeText(req.route?.path)),
  origin: req => req,
}

/**
 * Creates middleware that limits an Express app, a router or a route. Works with Express 5 and 4.
 *
 * @example
 * app.use(rateLimit({ limiter, policy: 'api' }))
 */
export function rateLimit<PolicyName extends string, TierName extends string>(
  options: ExpressOptions<PolicyName, TierName>,
): RequestHandler {
  const enforce = createEnforce(options as AnyOptions<Request>, framework)
  const limit: RequestHandler = (req, res, next) => applyOutcome(enforce(req), req, res, next)
  return limit
}
