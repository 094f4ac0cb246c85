/** The rule of every limiter. No key reaches the limit, and the window outlasts the run. */
export const RULE = { limit: 100_000_000, windowSeconds: 86_400 }

/** The header that says who is asking. */
export const USER_HEADER = 'x-user'

/** Few enough that each asks often enough to lease. */
export const USERS = 100
