/** Returns the median and the slow end of many durations. @param {readonly number[]} timesMs At least one. */
export function latenciesOf(timesMs) {
  const sorted = Float64Array.from(timesMs).sort()
  /** @param {number} share */
  const at = share => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}
