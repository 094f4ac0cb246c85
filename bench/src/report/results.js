import { BARE, CONTESTANTS } from '../contestants/contestants.js'
import { ratioOf, spreadOf } from './statistics.js'

/** @typedef {import('./statistics.js').Spread} Spread */
/** @typedef {import('../workloads.js').WorkloadId} WorkloadId */

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {Spread} perSecond
 * @property {number} deniedShare
 * @property {Spread} toBare Its speed as a multiple of the bare Map's, compared round by round.
 * @property {Record<string, Spread>} headgate Headgate's speed as a multiple of this one's, by kind of limit.
 */

/** @typedef {{ workload: WorkloadId, inFlight: number, rows: Row[] }} SpeedResult */
/** @typedef {{ name: string, bytesPerKey: number, keysPerSecond: number }} HeapResult */

/**
 * @typedef {object} Results
 * @property {{ node: string, cores: number, rounds: number, heapKeys: number }} setting
 * @property {SpeedResult[]} speed
 * @property {HeapResult[]} heap
 * @property {{ entries: number, bytesPerKey: number }[]} logHeap The bytes of a key by the number of entries in its log.
 */

export const HEADGATE = CONTESTANTS.filter(entry => entry.role === 'headgate').map(entry => entry.name)

export const COUNTER = 'headgate, sliding-window counter'
export const LOG = 'headgate, sliding-window log'

/**
 * @param {WorkloadId} workload
 * @param {number} inFlight
 * @param {import('../measure/speed.js').Slices} slices
 * @returns {SpeedResult}
 */
export function toSpeedResult(workload, inFlight, slices) {
  const rates = new Map(
    [...slices].map(([name, list]) => [name, list.map(({ requests, seconds }) => requests / seconds)]),
  )
  /** @param {string} name */
  const ratesOf = name => /** @type {number[]} */ (rates.get(name))
  const rows = [...slices].map(([name, list]) => ({
    name,
    perSecond: spreadOf(ratesOf(name)),
    deniedShare: spreadOf(list.map(({ denied, requests }) => denied / requests)).median,
    toBare: ratioOf(ratesOf(name), ratesOf(BARE)),
    headgate: Object.fromEntries(HEADGATE.map(ours => [ours, ratioOf(ratesOf(ours), ratesOf(name))])),
  }))
  return { workload, inFlight, rows }
}

/** @param {Results} results @param {WorkloadId} workload @param {number} inFlight @returns {readonly Row[]} */
export function rowsOf(results, workload, inFlight) {
  const found = results.speed.find(speed => speed.workload === workload && speed.inFlight === inFlight)
  return found?.rows ?? []
}
