/** For writing your own adapter: the core that every adapter of this package wraps. */

export type { Enforce, Framework, Outcome } from './adapters/enforce.js'
export { createEnforce } from './adapters/enforce.js'
export type { AnyOptions, RateLimitOptions } from './adapters/options.js'
