/**
 * The median of the measurements and their quartiles.
 *
 * @typedef {{ median: number, q1: number, q3: number }} Spread
 */

/** @param {readonly number[]} values At least one. @returns {Spread} */
export function spreadOf(values) {
  const sorted = [...values].sort((one, other) => one - other)
  return { median: quantile(sorted, 0.5), q1: quantile(sorted, 0.25), q3: quantile(sorted, 0.75) }
}

/**
 * Returns the ratio of `values` to `others` in pairs. Each pair comes from the same round, so a slow phase of the machine
 * cancels out.
 *
 * @param {readonly number[]} values
 * @param {readonly number[]} others
 * @returns {Spread}
 */
export function ratioOf(values, others) {
  return spreadOf(values.map((value, round) => value / /** @type {number} */ (others[round])))
}

/** @param {readonly number[]} sorted @param {number} share */
function quantile(sorted, share) {
  const place = (sorted.length - 1) * share
  const below = /** @type {number} */ (sorted[Math.floor(place)])
  const above = /** @type {number} */ (sorted[Math.ceil(place)])
  return below + (above - below) * (place - Math.floor(place))
}
