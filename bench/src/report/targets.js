import { BARE } from '../contestants/contestants.js'
import { WORKLOAD_IDS } from '../workloads.js'
import { HEADGATE, rowsOf } from './results.js'

/** @typedef {import('./results.js').Results} Results */

/**
 * @typedef {object} Target
 * @property {string} what
 * @property {string} headgate The kind of limit it was measured with.
 * @property {number} wanted
 * @property {'at least' | 'at most'} sense
 * @property {number} measured
 * @property {boolean} met
 */

const OF_BARE = 0.8
const MAX_BYTES_PER_KEY = 110
/** Those who answer with a promise and keep the keys themselves, as Headgate does. */
const RIVALS = ['rate-limiter-flexible', 'express-rate-limit', 'hono-rate-limiter']
/** In (a) and (c) waiting for memory and for the promise itself is most of anybody's time. */
const TIMES_RIVAL = { a: 1.1, b: 1.5, c: 1.1 }

/** Lists the targets of the embedded store, and whether it reached them. @param {Results} results @returns {Target[]} */
export function judge(results) {
  /** @type {Target[]} */
  const targets = []
  for (const workload of WORKLOAD_IDS) {
    const rows = rowsOf(results, workload, 1)
    for (const other of [BARE, ...RIVALS]) {
      const wanted = other === BARE ? OF_BARE : TIMES_RIVAL[workload]
      const ratios = rows.find(row => row.name === other)?.headgate ?? {}
      for (const headgate of HEADGATE) {
        const measured = ratios[headgate]?.median ?? 0
        const what = `(${workload}) ${other}`
        targets.push({ what, headgate, wanted, sense: 'at least', measured, met: measured >= wanted })
      }
    }
  }
  for (const headgate of HEADGATE) {
    const measured =
      results.heap.find(heap => heap.name === headgate)?.bytesPerKey ?? Number.POSITIVE_INFINITY
    targets.push({
      what: 'bytes a key',
      headgate,
      wanted: MAX_BYTES_PER_KEY,
      sense: 'at most',
      measured,
      met: measured <= MAX_BYTES_PER_KEY,
    })
  }
  return targets
}
