export type { NextOptions } from './adapters/next.js'
export { isStaticAsset, rateLimit, withRateLimit } from './adapters/next.js'
export type { ActionOptions } from './adapters/next-action.js'
export { limitAction } from './adapters/next-action.js'
