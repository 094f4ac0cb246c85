export { endUnread } from './adapters/node.js'
export type { NodeHttpOptions } from './adapters/node-http.js'
export { endSocket, rateLimit } from './adapters/node-http.js'
