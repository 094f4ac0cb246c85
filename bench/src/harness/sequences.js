/** Builds sequences of requests: pseudo-random numbers, Zipf's law, and the limit that denies a given share. */

/**
 * Draws for each of `count` requests which of `keyCount` keys it is for, when the k-th busiest key asks 1/k as often as the busiest.
 *
 * @param {number} keyCount
 * @param {number} count
 * @param {() => number} random From 0 to 1.
 */
export function zipfRanks(keyCount, count, random) {
  const reach = new Float64Array(keyCount)
  let sum = 0
  for (let rank = 0; rank < keyCount; rank++) {
    sum += 1 / (rank + 1)
    reach[rank] = sum
  }
  /** @type {number[]} */
  const counts = new Array(keyCount).fill(0)
  const ranks = Uint32Array.from({ length: count }, () => {
    const rank = firstReaching(reach, random() * sum)
    counts[rank] = (counts[rank] ?? 0) + 1
    return rank
  })
  return { ranks, counts }
}

/** Counts the requests over the limit when each key may make `limit`. @param {readonly number[]} counts @param {number} limit */
export function countOver(counts, limit) {
  return counts.reduce((total, count) => total + Math.max(0, count - limit), 0)
}

/**
 * Returns the lowest limit that denies at most `denied` requests.
 *
 * @param {readonly number[]} counts Requests of each key.
 * @param {number} denied
 */
export function limitDenying(counts, denied) {
  let low = 1
  let high = Math.max(...counts)
  while (low < high) {
    const limit = (low + high) >>> 1
    if (countOver(counts, limit) <= denied) high = limit
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

/** Creates a source of pseudo-random numbers from 0 to 1, the same in every run. @param {number} seed */
export function createRandom(seed) {
  let state = seed >>> 0
  return () => {
    // A linear congruential step; the shifts mix its weak low bits.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x45d9f3b) >>> 0
    mixed = (mixed ^ (mixed >>> 15)) >>> 0
    return mixed / 2 ** 32
  }
}
