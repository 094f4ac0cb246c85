export type { NestOptions } from './adapters/nest.js'
export {
  RateLimit,
  RateLimitException,
  RateLimitFilter,
  RateLimitGuard,
  RateLimitModule,
} from './adapters/nest.js'
