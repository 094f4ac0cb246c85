import { CONTESTANTS } from '../contestants/contestants.js'
import { Child } from './child.js'

/** @typedef {import('./heap-process.js').Heap} Heap */

/**
 * Measures what a key costs each contestant, in bytes, and how fast new keys are taken in.
 *
 * @param {number} keys
 * @param {(step: string) => void} tell
 * @returns {Promise<Map<string, Heap>>}
 */
export async function measureHeap(keys, tell) {
  /** @type {Map<string, Heap>} */
  const heaps = new Map()
  for (const { name, role } of CONTESTANTS) {
    if (role === 'harness') continue
    tell(name)
    heaps.set(name, await weigh(name, keys, 1))
  }
  return heaps
}

/** Requests of a key whose log is weighed. */
const ENTRIES = [1, 2, 5, 10, 100]

/**
 * Measures what a key costs as its log grows, in bytes.
 *
 * @param {string} name
 * @param {number} keys
 * @param {(step: string) => void} tell
 * @returns {Promise<{ entries: number, bytesPerKey: number }[]>}
 */
export async function measureLogHeap(name, keys, tell) {
  const heaps = []
  for (const entries of ENTRIES) {
    tell(`${name}, ${entries}`)
    const { bytesPerKey } = await weigh(name, keys, entries)
    heaps.push({ entries, bytesPerKey })
  }
  return heaps
}

/** @param {string} name @param {number} keys @param {number} requestsEach */
async function weigh(name, keys, requestsEach) {
  const child = new Child('heap-process.js', [name, String(keys), String(requestsEach)])
  const heap = /** @type {Heap} */ (await child.receive())
  child.stop()
  return heap
}
