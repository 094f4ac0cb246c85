import { createLimiter, isHeadgateError, slidingWindowCounter } from 'headgate'

/** Whether this build of the library takes `lease` in a policy. */
export function leasesAreKnown() {
  try {
    createLimiter({ policies: { api: withLease([slidingWindowCounter({ limit: 100, window: '1h' })]) } })
    return true
  } catch (error) {
    if (isHeadgateError(error)) return false
    throw error
  }
}

/** Returns the policy that lets a process lease these limits. @param {readonly import('headgate').Limit[]} limits */
export function withLease(limits) {
  return /** @type {import('headgate').PolicyOptions} */ (/** @type {unknown} */ ({ limits, lease: 'auto' }))
}
