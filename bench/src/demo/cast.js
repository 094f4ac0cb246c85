/** The cast of the demo: who asks, how often, and what everybody may. */
import { IDENTIFY } from '../traffic/request.js'

export const LIMIT_PER_SECOND = 20

/** @typedef {{ name: string, perSecond: number, isAbusive: boolean }} Client */

/** @type {readonly Client[]} */
export const CLIENTS = [
  { name: 'ada', perSecond: 4, isAbusive: false },
  { name: 'barbara', perSecond: 4, isAbusive: false },
  { name: 'edsger', perSecond: 3, isAbusive: false },
  { name: 'grace', perSecond: 3, isAbusive: false },
  { name: 'scraper', perSecond: 150, isAbusive: true },
  { name: 'runaway-job', perSecond: 60, isAbusive: true },
]

/** Asks for a moment before anybody counts, so that what is shown is not the compiler at work. */
export const WARM_UP = [{ name: 'warm-up', perSecond: 150, isAbusive: true }]

/** @param {readonly number[]} appPorts */
export function policyFile(appPorts) {
  return `${IDENTIFY}
policies:
  api: { algorithm: sliding-window-log, limit: ${LIMIT_PER_SECOND}, window: 1s }
default: { policy: api }
upstream: [${appPorts.map(port => `"http://127.0.0.1:${port}"`).join(', ')}]
`
}

/**
 * The most that one caller may be let through in a time: the log admits the limit in any second, and where Redis and the
 * gateways take over from each other, the one does not know what the other has just admitted.
 *
 * @param {number} seconds
 * @param {number} handovers
 */
export function mostAllowed(seconds, handovers) {
  return LIMIT_PER_SECOND * (Math.ceil(seconds) + handovers)
}
