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
    const child = new Child('heap-process.js', [name, String(keys)])
    heaps.set(name, /** @type {Heap} */ (await child.receive()))
    child.stop()
  }
  return heaps
}
