import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import { isPromise } from '../subject/source.js'
import { hasLongBody } from './answer-unread.js'
import type { Enforce, Framework, Outcome, Refused } from './enforce.js'
import { NodeRequest } from './node-request.js'
import { sendRefusal } from './node-response.js'
import type { AnyOptions, RateLimitOptions } from './options.js'
import { createOwnLimits, type OwnLimit } from './own-limits.js'
import { endOnClose } from './response-end.js'

export type FastifyOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  FastifyRequest,
  PolicyName,
  TierName
>

/** The value of `config.rateLimit` on a route: options that replace the plugin's, or `false` for no limit. */
export type RouteLimit = OwnLimit<FastifyRequest>

declare module 'fastify' {
  interface FastifyContextConfig {
    rateLimit?: RouteLimit
  }
}

/** Converts a request of Fastify. */
export const framework: Framework<FastifyRequest> = {
  knowsPeer: true,
  read: request => new NodeRequest(request.raw, request.originalUrl, () => request.routeOptions.url),
  origin: request => request.raw,
}

/**
 * Creates the plugin that limits a Fastify app: every route of the context it is registered in, and unmatched requests.
 *
 * @example
 * await app.register(rateLimit({ limiter, policy: 'api' }))
 * app.post('/login', { config: { rateLimit: { policy: 'login' } } }, handler)
 */
export function rateLimit<PolicyName extends string, TierName extends string>(
  options: FastifyOptions<PolicyName, TierName>,
): FastifyPluginCallback {
  const enforceOf = createOwnLimits(options as AnyOptions<FastifyRequest>, framework)
  const unusable = new WeakSet<object>()

  /** Covers routes made before the plugin was loaded, for which `onRoute` is not called. */
  function enforceLoaded(own: RouteLimit | undefined, { log }: FastifyInstance): Enforce<FastifyRequest> {
    if (typeof own === 'object' && unusable.has(own)) return enforceOf(undefined)
    try {
      return enforceOf(own)
    } catch (error) {
      unusable.add(own as object)
      log.error(error, 'config.rateLimit of a route is not used')
      return enforceOf(undefined)
    }
  }

  const plugin: FastifyPluginCallback = (app, _options, done) => {
    // Validates the options of a route when it is made, not at its first request.
    app.addHook('onRoute', ({ config }) => void enforceOf(config?.rateLimit))
    app.addHook('onRequest', (request, reply, go) => {
      const outcome = enforceLoaded(request.routeOptions.config.rateLimit, app)(request)
      if (isPromise(outcome)) outcome.then(known => applyOutcome(known, request, reply, go))
      else applyOutcome(outcome, request, reply, go)
    })
    done()
  }
  // As in fastify-plugin: the hooks belong to the context that registers the plugin, not to one of its own.
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'headgate',
  })
}

/** Continues a request that passes, and refuses any other. */
export function applyOutcome(
  outcome: Outcome,
  { raw }: FastifyRequest,
  reply: FastifyReply,
  go: () => void,
): void {
  for (const [name, value] of outcome.headers) reply.header(name, value)
  if (outcome.allowed) {
    endOnClose(outcome.ended, reply.raw)
    go()
  } else if (!hasLongBody(raw) && !reply.raw.headersSent) reply.code(outcome.status).send(outcome.body)
  else refuseRaw(outcome, raw, reply)
}

/**
 * Bypasses Fastify, which would end the response before the client has stopped sending, but keeps the headers set
 * on it.
 */
function refuseRaw(outcome: Refused, raw: FastifyRequest['raw'], reply: FastifyReply): void {
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined && !reply.raw.headersSent) reply.raw.setHeader(name, value)
  }
  sendRefusal(raw, reply.raw, outcome)
}
