/** The clients of the demo, how often they ask, and the limit for everybody. */
import { IDENTIFY } from '../harness/http.js'

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

/** Warms the gateways up before anything is counted, so that the figures do not show the compiler at work. */
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
 * Returns the most requests that one caller may get through in a time. The log admits the limit in any second, and at
 * each handover between Redis and the gateways, one side does not know what the other has just admitted.
 *
 * @param {number} seconds
 * @param {number} handovers
 */
export function mostAllowed(seconds, handovers) {
  return LIMIT_PER_SECOND * (Math.ceil(seconds) + handovers)
}
