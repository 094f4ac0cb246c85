export type { FastifyOptions, RouteLimit } from './adapters/fastify.js'
export { rateLimit } from './adapters/fastify.js'
