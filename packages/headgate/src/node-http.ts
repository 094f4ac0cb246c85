export type { NodeHttpOptions, NodeLimit } from './adapters/node-http.js'
export { rateLimit } from './adapters/node-http.js'
