export type { AdaptiveConcurrency } from './outbound/adaptive-concurrency.js'
export { adaptiveConcurrency } from './outbound/adaptive-concurrency.js'
export { limitFetch } from './outbound/limit-fetch.js'
