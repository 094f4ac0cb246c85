export type { ExpressOptions } from './adapters/express.js'
export { rateLimit } from './adapters/express.js'
