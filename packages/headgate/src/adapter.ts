/** For an adapter of one's own: the core that every adapter of this package is a translation of. */
export type { Enforce, Framework, Outcome, Passed, Refused } from './adapters/enforce.js'
export { createEnforce } from './adapters/enforce.js'
export type { AnyOptions, GateOptions, LimiterOptions, RateLimitOptions } from './adapters/options.js'
export type { HttpRequest } from './subject/http-request.js'
