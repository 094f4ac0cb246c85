/**
 * The workloads: keys, their requests, and the limit. Sequences come from a seed, so that every contestant sees the same
 * requests in the same order in every round.
 */

import { createRandom, limitDenying, zipfRanks } from './sequences.js'

/** @typedef {'a' | 'b' | 'c'} WorkloadId */

/**
 * @typedef {object} Workload
 * @property {readonly string[]} keys Every key once.
 * @property {readonly string[]} requests The key of each request.
 * @property {boolean} known Whether every key has asked before the clock starts.
 * @property {import('./contestants/contestant.js').Rule} rule
 */

/** @type {Readonly<Record<WorkloadId, { title: string, requests: number }>>} */
export const WORKLOADS = {
  a: { title: '100,000 keys alike, never limited', requests: 300_000 },
  b: { title: '10,000 keys, a few of them busy (zipf), 30 % denied', requests: 300_000 },
  c: { title: 'one hot key, 99 % denied', requests: 300_000 },
}

/** @type {readonly WorkloadId[]} */
export const WORKLOAD_IDS = ['a', 'b', 'c']

const SEED = 20_240_607
/** Outlasts the run, so that no window ends while we measure. */
const WINDOW_SECONDS = 3600
const UNREACHED = 1_000_000

/**
 * @param {WorkloadId} id
 * @param {number} scale Share of the full number of requests.
 * @returns {Workload}
 */
export function createWorkload(id, scale) {
  const count = Math.round(WORKLOADS[id].requests * scale)
  if (id === 'a') return uniform(100_000, count)
  if (id === 'b') return zipf(10_000, count, 0.3)
  return hot(count, 0.99)
}

/** @param {number} keyCount @param {number} count @returns {Workload} */
function uniform(keyCount, count) {
  const random = createRandom(SEED)
  const keys = createKeys(keyCount)
  const requests = Array.from({ length: count }, () => at(keys, Math.floor(random() * keyCount)))
  return { keys, requests, known: true, rule: { limit: UNREACHED, windowSeconds: WINDOW_SECONDS } }
}

/**
 * The k-th busiest key asks 1/k as often as the busiest.
 *
 * @param {number} keyCount
 * @param {number} count
 * @param {number} denied Share of the requests that are over the limit.
 * @returns {Workload}
 */
function zipf(keyCount, count, denied) {
  const keys = createKeys(keyCount)
  const { ranks, counts } = zipfRanks(keyCount, count, createRandom(SEED))
  const requests = Array.from(ranks, rank => at(keys, rank))
  return {
    keys,
    requests,
    known: false,
    rule: { limit: limitDenying(counts, denied * count), windowSeconds: WINDOW_SECONDS },
  }
}

/**
 * @param {number} count
 * @param {number} denied Share of the requests that are over the limit.
 * @returns {Workload}
 */
function hot(count, denied) {
  const keys = createKeys(1)
  const requests = new Array(count).fill(at(keys, 0))
  return {
    keys,
    requests,
    known: false,
    rule: { limit: Math.round(count * (1 - denied)), windowSeconds: WINDOW_SECONDS },
  }
}

/** @param {number} count */
function createKeys(count) {
  return Array.from({ length: count }, (_, index) => `user:${index}`)
}

/** @param {readonly string[]} list @param {number} index */
function at(list, index) {
  return /** @type {string} */ (list[index])
}
