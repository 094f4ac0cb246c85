import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import type { Decision } from '../decision/decision.js'
import type { HeaderField } from '../decision/headers.js'
import { invalidOption } from '../errors/headgate-error.js'
import { type FrameworkTrust, trustByFunction } from '../subject/client-address.js'
import { isPromise } from '../subject/sources.js'
import type { Enforce, Framework, Outcome, Rejected } from './enforce.js'
import { drain, hasLongBody, inLowerCase, NodeRequest, readOnce, sendRejection } from './node.js'
import type { AnyOptions, RateLimitOptions } from './options.js'
import { createOwnLimits, type OwnLimit } from './own-limits.js'
import { endOnClose } from './response-end.js'

export type FastifyOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  FastifyRequest,
  PolicyName,
  TierName
> & {
  /**
   * Passes a rejection to the app's error handler, as a `RateLimitError`, instead of answering it. Default false: a handler
   * that answers every unknown error with 500 would hide that a client is to slow down.
   */
  readonly useErrorHandler?: boolean
}

/** A rejection as Fastify's error handlers get it. Its headers are on the reply already. */
export class RateLimitError extends Error {
  /** 429, or 503 in failure mode `closed`. */
  readonly statusCode: 429 | 503
  readonly decision: Decision
  /** The body that the plugin would have sent: what the option `body` returned, or the problem as JSON. */
  readonly body: string

  constructor({ status, decision, body, detail }: Rejected) {
    super(detail)
    this.name = 'RateLimitError'
    this.statusCode = status
    this.decision = decision
    this.body = body
  }
}

/** The value of `config.rateLimit` on a route: options that replace the plugin's, or `false` for no limit. */
export type RouteLimit = OwnLimit<FastifyRequest>

declare module 'fastify' {
  interface FastifyRequest {
    /** The decision of the innermost limiter; absent if the request is not limited. */
    rateLimit?: Decision
  }
  interface FastifyContextConfig {
    rateLimit?: RouteLimit
  }
}

/** Converts a request of Fastify. */
export const framework: Framework<FastifyRequest> = {
  knowsPeer: true,
  read: request => new FastifyHttpRequest(request),
  origin: request => request.raw,
}

/**
 * Fastify keeps `trustProxy` to itself, but `ips` of a request shows whom it believes: the address that a believed peer
 * names is among them.
 */
const trustOf = readOnce((prototype: object): FrameworkTrust | undefined => {
  const ipsFrom = (remoteAddress: string): readonly string[] | undefined => {
    const raw = { socket: { remoteAddress }, headers: { 'x-forwarded-for': '192.0.2.1' } }
    return Object.create(prototype, { raw: { value: raw } }).ips
  }
  if (ipsFrom('192.0.2.1') === undefined) return undefined
  return trustByFunction(address => ipsFrom(address)?.length === 2)
})

class FastifyHttpRequest extends NodeRequest {
  constructor(private readonly request: FastifyRequest) {
    super(request.raw)
  }

  override get url(): string {
    return this.request.originalUrl
  }

  override get route(): string | undefined {
    return this.request.routeOptions.url
  }

  override get trust(): FrameworkTrust | undefined {
    return trustOf(Object.getPrototypeOf(this.request))
  }
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
  const { useErrorHandler = false, ...rest } = options
  if (typeof useErrorHandler !== 'boolean')
    throw invalidOption('useErrorHandler', 'true or false', useErrorHandler)
  const apply = useErrorHandler ? applyOrThrow : applyOutcome
  const enforceOf = createOwnLimits(rest as AnyOptions<FastifyRequest>, framework)
  const unusable = new WeakSet<object>()

  /** Covers routes made before the plugin was loaded, for which `onRoute` is not called. */
  function enforceLoaded(
    { url, config: { rateLimit: own } }: FastifyRequest['routeOptions'],
    { log }: FastifyInstance,
  ): Enforce<FastifyRequest> {
    if (typeof own === 'object' && unusable.has(own)) return enforceOf(undefined)
    try {
      return enforceOf(own, url)
    } catch (error) {
      unusable.add(own as object)
      log.error(error, 'config.rateLimit of a route is not used')
      return enforceOf(undefined)
    }
  }

  const plugin: FastifyPluginCallback = (app, _options, done) => {
    if (!app.hasRequestDecorator('rateLimit')) app.decorateRequest('rateLimit')
    // Validates the options of a route when it is made, not at its first request.
    app.addHook('onRoute', ({ url, config }) => void enforceOf(config?.rateLimit, url))
    app.addHook('onRequest', (request, reply, go) => {
      const outcome = enforceLoaded(request.routeOptions, app)(request)
      if (isPromise(outcome)) outcome.then(known => apply(known, request, reply, go))
      else apply(outcome, request, reply, go)
    })
    done()
  }
  // As in fastify-plugin: the hooks belong to the context that registers the plugin, not to one of its own.
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'headgate',
  })
}

/** Continues a request that passes, and rejects any other. */
export function applyOutcome(
  outcome: Outcome,
  request: FastifyRequest,
  reply: FastifyReply,
  go: () => void,
): void {
  const { raw } = request
  if (outcome.decision !== null) request.rateLimit = outcome.decision
  addHeaders(reply, outcome.headers)
  if (outcome.allowed) {
    endOnClose(outcome.ended, reply.raw)
    go()
  } else if (!hasLongBody(raw) && !reply.raw.headersSent) reply.code(outcome.status).send(outcome.body)
  else rejectRaw(outcome, raw, reply)
}

function addHeaders(reply: FastifyReply, headers: readonly HeaderField[]): void {
  for (const field of headers) reply.header(inLowerCase(field[0]), field[1])
}

/** Continues a request that passes, and leaves the answer to any other to the app's error handler. */
function applyOrThrow(
  outcome: Outcome,
  request: FastifyRequest,
  reply: FastifyReply,
  go: (error?: Error) => void,
): void {
  const { raw } = request
  if (outcome.allowed || reply.raw.headersSent) {
    applyOutcome(outcome, request, reply, go)
    return
  }
  request.rateLimit = outcome.decision
  addHeaders(
    reply,
    outcome.headers.filter(([name]) => name !== 'Content-Type'),
  )
  // The answer is out by then; a client that still sends is listened to for no longer than otherwise.
  if (hasLongBody(raw)) reply.raw.once('finish', () => drain(raw, () => raw.complete || raw.destroy()))
  go(new RateLimitError(outcome))
}

/**
 * Bypasses Fastify, which would end the response before the client has stopped sending, but keeps the headers set
 * on it.
 */
function rejectRaw(outcome: Rejected, raw: FastifyRequest['raw'], reply: FastifyReply): void {
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined && !reply.raw.headersSent) reply.raw.setHeader(name, value)
  }
  sendRejection(raw, reply.raw, outcome)
}
