/** A thousand users, a few of whom ask for twice what they may, so that about one request in twenty is denied. */
import { IDENTIFY } from '../harness/http.js'

const DENIED_SHARE = 0.05
const LEAST_LIMIT = 10
/** The factor by which the limit exceeds the rate of a well-behaved user. */
const ROOM = 4

/** @typedef {{ perSecond: number, isAbusive: boolean }} User */
/** @typedef {{ users: readonly User[], limitPerSecond: number }} Users */

/** @param {{ rate: number, users: number }} order @returns {Users} */
export function usersOf({ rate, users }) {
  const limitPerSecond = Math.max(LEAST_LIMIT, Math.ceil((ROOM * rate) / users))
  const abusers = Math.max(1, Math.round((DENIED_SHARE * rate) / limitPerSecond))
  // An abuser is denied as often as it is admitted.
  const abuse = { perSecond: (2 * DENIED_SHARE * rate) / abusers, isAbusive: true }
  const rest = { perSecond: ((1 - 2 * DENIED_SHARE) * rate) / (users - abusers), isAbusive: false }
  return {
    users: Array.from({ length: users }, (_, user) => (user < abusers ? abuse : rest)),
    limitPerSecond: Math.round((DENIED_SHARE * rate) / abusers),
  }
}

/** @param {number} limitPerSecond @param {number} upstreamPort */
export function policyFile(limitPerSecond, upstreamPort) {
  return `${IDENTIFY}
policies:
  api:
    - { algorithm: token-bucket, capacity: ${limitPerSecond}, refillPerSecond: ${limitPerSecond} }
    - { algorithm: sliding-window-counter, limit: ${limitPerSecond * 3_600}, window: 1h }
default: { policy: api }
upstream: http://127.0.0.1:${upstreamPort}
`
}
