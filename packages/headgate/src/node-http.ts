export { drain, endUnread, MAX_DRAINED_BYTES } from './adapters/node.js'
export type { NodeHttpOptions, NodeLimit } from './adapters/node-http.js'
export { endSocket, rateLimit } from './adapters/node-http.js'
