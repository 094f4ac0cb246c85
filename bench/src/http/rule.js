/** The same for every limiter: never reached, and a window that outlasts the run. */
export const RULE = { limit: 100_000_000, windowSeconds: 86_400 }

/** The header that says who is asking. */
export const USER_HEADER = 'x-user'

/** So few that each is as busy as a lease is meant for. */
export const USERS = 100
