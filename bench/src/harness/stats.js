/** The median of measurements and the middle half of them. @typedef {{ median: number, low: number, high: number }} Spread */

/** @param {readonly number[]} values At least one. @returns {Spread} */
export function spreadOf(values) {
  const sorted = [...values].sort((one, other) => one - other)
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) }
}

/** @param {readonly number[]} values At least one. */
export function medianOf(values) {
  return spreadOf(values).median
}

/**
 * Returns the ratios of values of the same round, so that a slow phase of the machine cancels out.
 *
 * @param {readonly number[]} values
 * @param {readonly number[]} others
 */
export function ratioOf(values, others) {
  return spreadOf(values.map((value, round) => value / /** @type {number} */ (others[round])))
}

/** @param {readonly number[]} sorted @param {number} share From 0 to 1. */
export function quantile(sorted, share) {
  const position = (sorted.length - 1) * share
  const below = /** @type {number} */ (sorted[Math.floor(position)])
  const above = /** @type {number} */ (sorted[Math.ceil(position)])
  return below + (above - below) * (position - Math.floor(position))
}
