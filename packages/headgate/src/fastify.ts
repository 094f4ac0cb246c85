export type { FastifyOptions } from './adapters/fastify.js'
export { RateLimitError, rateLimit } from './adapters/fastify.js'
