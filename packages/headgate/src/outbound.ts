export type {
  AdaptiveConcurrency,
  AdaptiveConcurrencyOptions,
  HowItEnded,
  LeaveUpstream,
} from './outbound/adaptive-concurrency.js'
export { adaptiveConcurrency } from './outbound/adaptive-concurrency.js'
export type { AdaptiveBounds } from './outbound/adaptive-hosts.js'
export { howAnswered } from './outbound/adaptive-hosts.js'
export type { Asking, Priority } from './outbound/fair-places.js'
export type { LimitFetchOptions } from './outbound/limit-fetch.js'
export { limitFetch } from './outbound/limit-fetch.js'
