export type { FetchOptions } from './adapters/fetch.js'
export { rateLimit } from './adapters/fetch.js'
