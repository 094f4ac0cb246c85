/**
 * Measures in rounds on one Redis. In each round every contestant runs one slice, and each round starts with another
 * contestant. Results are compared within a round, where a disturbance of the machine affects neighbours alike.
 */
import { Child } from '../measure/child.js'
import { CONTESTANTS, idOf, isQuickest } from './contestants/contestants.js'

/** @typedef {import('./workloads.js').WorkloadId} WorkloadId */
/** @typedef {import('./slice-process.js').Slice & { redisCpuSeconds: number }} Slice */
/** @typedef {Map<string, Slice[]>} Slices By contestant, one for each round. */
/** @typedef {{ workload: WorkloadId, inFlight: number, rounds: number, seconds: number, warmUpRequests: number, quickestOnly: boolean }} RoundsOrder */

/** The contestants' processes. Each starts when first needed and keeps its connections to the end. */
export class Field {
  /** @type {Map<string, Promise<Child>>} */
  #children = new Map()
  #server

  /** @param {import('./server.js').Server} server */
  constructor(server) {
    this.#server = server
  }

  /** @param {string} id */
  #child(id) {
    let child = this.#children.get(id)
    if (child === undefined) {
      const place = CONTESTANTS.findIndex(entry => idOf(entry) === id)
      const process = new Child('../redis/slice-process.js', [id, this.#server.url, `p${place}`])
      child = process.receive().then(() => process)
      this.#children.set(id, child)
    }
    return child
  }

  /** Asks for every key of (a) once. @param {string} id */
  async fill(id) {
    await (await this.#child(id)).request('fill')
  }

  /** @param {string} id @param {import('./slice-process.js').SliceOrder} order @returns {Promise<Slice>} */
  async slice(id, order) {
    const child = await this.#child(id)
    const before = await this.#server.cpuSeconds()
    const slice = /** @type {import('./slice-process.js').Slice} */ (await child.request(order))
    if (slice.wrong !== null)
      throw new Error(`(${order.workload}) ${id}, ${order.inFlight} in flight: ${slice.wrong}`)
    return { ...slice, redisCpuSeconds: (await this.#server.cpuSeconds()) - before }
  }

  async stop() {
    for (const child of this.#children.values()) (await child).stop()
  }
}

/**
 * @param {Field} field
 * @param {RoundsOrder} order
 * @param {(step: string) => void} tell
 * @returns {Promise<Slices>}
 */
export async function runRounds(field, { workload, inFlight, rounds, seconds, ...order }, tell) {
  const ids = CONTESTANTS.filter(entry => entry.workloads.includes(workload))
    .filter(entry => !order.quickestOnly || isQuickest(entry))
    .map(idOf)
  for (const id of ids) {
    tell(`warm-up: ${id}`)
    await field.slice(id, { workload, inFlight, seconds, settleRequests: order.warmUpRequests })
  }
  /** @type {Slices} */
  const slices = new Map(ids.map(id => [id, []]))
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < ids.length; turn++) {
      const id = /** @type {string} */ (ids[(round + turn) % ids.length])
      tell(`round ${round + 1} of ${rounds}: ${id}`)
      slices.get(id)?.push(await field.slice(id, { workload, inFlight, seconds }))
    }
  }
  return slices
}
