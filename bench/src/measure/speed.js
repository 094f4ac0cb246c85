/**
 * Measures in rounds. In each round every contestant runs the same requests once, one after the other, and each round
 * starts with another contestant. A disturbance of the machine affects neighbours alike, so results are compared within
 * a round before they are summed up.
 */
import { CONTESTANTS } from '../contestants/contestants.js'
import { Child } from './child.js'

/** @typedef {import('./speed-process.js').Slice} Slice */
/** @typedef {import('./speed-process.js').SliceOrder} SliceOrder */

/**
 * @typedef {object} SpeedOrder
 * @property {import('../workloads.js').WorkloadId} workload
 * @property {number} scale
 * @property {number} rounds
 * @property {boolean} inFlight
 */

/** Slices by contestant, one for each round. @typedef {Map<string, Slice[]>} Slices */

const WARM_UPS = 2

/**
 * @param {SpeedOrder} order
 * @param {(step: string) => void} tell
 * @returns {Promise<Slices>}
 */
export async function measureSpeed({ workload, scale, rounds, inFlight }, tell) {
  const names = CONTESTANTS.map(entry => entry.name)
  /** @type {Map<string, Child>} */
  const children = new Map()
  try {
    for (const name of names) {
      tell(`warm-up: ${name}`)
      const child = new Child('speed-process.js', [name, workload, String(scale)])
      children.set(name, child)
      await child.receive()
      for (let warmUp = 0; warmUp < WARM_UPS; warmUp++) await slice(child, { inFlight })
    }
    /** @type {Slices} */
    const slices = new Map(names.map(name => [name, []]))
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < names.length; turn++) {
        const name = /** @type {string} */ (names[(round + turn) % names.length])
        tell(`round ${round + 1} of ${rounds}: ${name}`)
        slices.get(name)?.push(await slice(/** @type {Child} */ (children.get(name)), { inFlight }))
      }
    }
    return slices
  } finally {
    for (const child of children.values()) child.stop()
  }
}

/** @param {Child} child @param {SliceOrder} order */
async function slice(child, order) {
  return /** @type {Slice} */ (await child.request(order))
}
