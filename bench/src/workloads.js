/**
 * Who asks, how often, and how much each may. Sequences are made from a seed, so that every contestant in every
 * round sees the same requests in the same order.
 */

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
/** Windows outlast the run: what is measured is deciding, not the change of a window. */
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
  const random = createRandom(SEED)
  const keys = createKeys(keyCount)
  const reach = new Float64Array(keyCount)
  let sum = 0
  for (let rank = 0; rank < keyCount; rank++) {
    sum += 1 / (rank + 1)
    reach[rank] = sum
  }
  const counts = new Array(keyCount).fill(0)
  const requests = Array.from({ length: count }, () => {
    const rank = firstReaching(reach, random() * sum)
    counts[rank]++
    return at(keys, rank)
  })
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

/**
 * The least limit under which no more than `denied` requests are over it.
 *
 * @param {readonly number[]} counts Requests of each key.
 * @param {number} denied
 */
function limitDenying(counts, denied) {
  let low = 1
  let high = Math.max(...counts)
  while (low < high) {
    const limit = (low + high) >>> 1
    const over = counts.reduce((total, count) => total + Math.max(0, count - limit), 0)
    if (over <= denied) high = limit
    else low = limit + 1
  }
  return low
}

/** @param {Float64Array} reach Ascending. @param {number} value */
function firstReaching(reach, value) {
  let low = 0
  let high = reach.length - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if (/** @type {number} */ (reach[middle]) > value) high = middle
    else low = middle + 1
  }
  return low
}

/** Numbers from 0 to 1 that look random and are the same in every run. @param {number} seed */
function createRandom(seed) {
  let state = seed >>> 0
  return () => {
    // A linear congruential step, its weak low bits mixed away by shifts.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x45d9f3b) >>> 0
    mixed = (mixed ^ (mixed >>> 15)) >>> 0
    return mixed / 2 ** 32
  }
}

/** @param {readonly string[]} list @param {number} index */
function at(list, index) {
  return /** @type {string} */ (list[index])
}
