export type { LimitFetchOptions } from './adapters/limit-fetch.js'
export { limitFetch } from './adapters/limit-fetch.js'
