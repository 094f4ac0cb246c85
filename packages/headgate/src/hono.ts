export type { HonoOptions } from './adapters/hono.js'
export { rateLimit } from './adapters/hono.js'
