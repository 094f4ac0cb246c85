/** Divides the run into alternating slices, limits on and limits off (`control off`), on the same connections and processes. */

/** @typedef {{ startMs: number, endMs: number, isOn: boolean }} Slice Since the traffic began. */

/** A change of the control reaches every gateway within a second; requests due in that time count for neither side. */
const SETTLE_MS = 1_200
const LONGEST_MS = 5_000

/**
 * Returns an even number of slices of equal length.
 *
 * @param {number} fromMs
 * @param {number} lengthMs
 * @returns {Slice[]}
 */
export function slicesOf(fromMs, lengthMs) {
  const pairs = Math.max(1, Math.round(lengthMs / (2 * LONGEST_MS)))
  const each = lengthMs / (2 * pairs)
  return Array.from({ length: 2 * pairs }, (_, index) => ({
    startMs: fromMs + index * each,
    endMs: fromMs + (index + 1) * each,
    isOn: index % 2 === 0,
  }))
}

/** Whether a request due then counts for the slice. @param {Slice} slice @param {number} dueMs */
export function isSettled({ startMs, endMs }, dueMs) {
  return dueMs >= startMs + Math.min(SETTLE_MS, (endMs - startMs) / 2) && dueMs < endMs
}
