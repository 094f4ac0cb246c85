import { BARE } from '../contestants/contestants.js'
import { WORKLOAD_IDS } from '../workloads.js'
import { COUNTER, HEADGATE, LOG, rowsOf } from './results.js'

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
/** A log keeps an entry for each request, in addition to a counter's state. */
const MAX_BYTES_PER_LOG = 120
const LOG_OF_COUNTER = 0.8
/** Peers that return a promise and keep the keys themselves, as Headgate does. */
const RIVALS = ['rate-limiter-flexible', 'express-rate-limit', 'hono-rate-limiter']
/** In (a) and (c), every limiter spends most of its time on memory access and on the promise. */
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
    const measured = rows.find(row => row.name === COUNTER)?.headgate[LOG]?.median ?? 0
    targets.push({
      what: `(${workload}) of the counter's speed`,
      headgate: LOG,
      wanted: LOG_OF_COUNTER,
      sense: 'at least',
      measured,
      met: measured >= LOG_OF_COUNTER,
    })
  }
  for (const headgate of HEADGATE) {
    const measured =
      results.heap.find(heap => heap.name === headgate)?.bytesPerKey ?? Number.POSITIVE_INFINITY
    const wanted = headgate === LOG ? MAX_BYTES_PER_LOG : MAX_BYTES_PER_KEY
    const what = headgate === LOG ? 'bytes a key of a log' : 'bytes a key'
    targets.push({ what, headgate, wanted, sense: 'at most', measured, met: measured <= wanted })
  }
  return targets
}
