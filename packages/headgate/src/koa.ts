export type { KoaOptions } from './adapters/koa.js'
export { rateLimit } from './adapters/koa.js'
