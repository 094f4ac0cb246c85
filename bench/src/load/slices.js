/** The run in slices that alternate: limits on, limits off (`control off`), on the same connections and processes. */

/** @typedef {{ startMs: number, endMs: number, isOn: boolean }} Slice Since the traffic began. */

/** A change of the control reaches every gateway within a second; what is due in that time belongs to neither side. */
const SETTLE_MS = 1_200
const LONGEST_MS = 5_000

/**
 * An even number of them, as long as each other.
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

/** Whether what was due then is counted for its slice. @param {Slice} slice @param {number} dueMs */
export function isSettled({ startMs, endMs }, dueMs) {
  return dueMs >= startMs + Math.min(SETTLE_MS, (endMs - startMs) / 2) && dueMs < endMs
}
