/** For writing your own adapter: the core that every adapter of this package wraps. */
export type { Enforce, Framework, Outcome, Passed, Rejected } from './adapters/enforce.js'
export { createEnforce } from './adapters/enforce.js'
export type { AnyOptions, RateLimitOptions } from './adapters/options.js'
export type { HttpRequest } from './subject/http-request.js'
export { ANONYMOUS, namesNobody } from './subject/subject.js'
