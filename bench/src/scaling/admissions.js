/** Judges a list of admissions by a limit. */

/** The most that was admitted in any interval of a length. @param {Float64Array} admittedUs In order. @param {number} lengthUs */
export function mostInAny(admittedUs, lengthUs) {
  let most = 0
  let first = 0
  for (let last = 0; last < admittedUs.length; last++) {
    // Half open: what is a whole interval later belongs to the next one.
    while (/** @type {number} */ (admittedUs[first]) <= /** @type {number} */ (admittedUs[last]) - lengthUs)
      first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

/** How many were admitted from then to then. @param {Float64Array} admittedUs @param {number} fromUs @param {number} toUs */
export function countBetween(admittedUs, fromUs, toUs) {
  let count = 0
  for (const atUs of admittedUs) if (atUs >= fromUs && atUs < toUs) count++
  return count
}
