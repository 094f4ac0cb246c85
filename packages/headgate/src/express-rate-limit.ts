export type { RateLimitStoreOptions } from './adapters/express-rate-limit.js'
export { rateLimitStore } from './adapters/express-rate-limit.js'
