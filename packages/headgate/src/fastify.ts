export type { FastifyOptions, RouteLimit } from './adapters/fastify.js'
export { RateLimitError, rateLimit } from './adapters/fastify.js'
