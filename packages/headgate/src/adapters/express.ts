import type { Request, RequestHandler } from 'express'
import type { Decision } from '../decision/decision.js'
import { type FrameworkTrust, trustByFunction } from '../subject/client-address.js'
import { createEnforce, type Framework } from './enforce.js'
import { applyOutcome, NodeRequest, readOnce, routeText } from './node.js'
import type { AnyOptions, RateLimitOptions } from './options.js'

export type ExpressOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  Request,
  PolicyName,
  TierName
>

declare global {
  namespace Express {
    interface Request {
      /** The decision of the innermost limiter; absent if the request is not limited. */
      rateLimit?: Decision
    }
  }
}

/** Converts a request of Express. */
export const framework: Framework<Request> = {
  knowsPeer: true,
  read: req => new ExpressRequest(req),
  origin: req => req,
  standsOn: req => routeText(req.route?.path),
}

/** `trust proxy` as Express has compiled it: of addresses and networks, a number of hops, or a function of the app's. */
const trustOf = readOnce((app: Request['app']) => trustByFunction(app.get('trust proxy fn')))

class ExpressRequest extends NodeRequest {
  constructor(private readonly request: Request) {
    super(request)
  }

  override get url(): string {
    return this.request.originalUrl ?? this.request.url
  }

  /** Without the mount path, which is in the client's spelling and may contain its ids. */
  override get route(): string | undefined {
    return routeText(this.request.route?.path)
  }

  override get trust(): FrameworkTrust | undefined {
    return trustOf(this.request.app)
  }
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
