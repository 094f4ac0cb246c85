export type { TrpcOptions } from './adapters/trpc.js'
export { RateLimitError, rateLimit, rateLimitHeaders, rateLimitOf } from './adapters/trpc.js'
