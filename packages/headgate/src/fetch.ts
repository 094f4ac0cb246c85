export type { FetchOptions, GateFetchOptions } from './adapters/fetch.js'
export { rateLimit } from './adapters/fetch.js'
