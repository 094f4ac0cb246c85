export type {
  AdaptiveConcurrency,
  AdaptiveConcurrencyOptions,
  ReleaseUpstream,
  UpstreamOutcome,
} from './outbound/adaptive-concurrency.js'
export { adaptiveConcurrency } from './outbound/adaptive-concurrency.js'
export type { AdaptiveBounds } from './outbound/adaptive-hosts.js'
export { outcomeOfStatus } from './outbound/adaptive-hosts.js'
export type { Asking, Priority } from './outbound/fair-permits.js'
export type { LimitFetchOptions } from './outbound/limit-fetch.js'
export { limitFetch } from './outbound/limit-fetch.js'
