import { latenciesOf } from './latencies.js'

/**
 * @typedef {object} Counted
 * @property {number} requests
 * @property {number} denied
 * @property {number} laps
 * @property {number} seconds
 * @property {number} p50Ms
 * @property {number} p99Ms
 */

/** With many in flight, times one request in this many: timing each would cost the fastest contestant a tenth. */
const TIME_ONE_IN = 16

/**
 * Asks in lanes, each one request at a time, for at least `seconds` and `atLeast` requests, and to the end of a lap.
 *
 * @param {import('./contestants/contestant.js').Contestant} contestant
 * @param {{ lap: (lap: number) => readonly string[], firstLap: number, inFlight: number, seconds: number, atLeast?: number }} order
 * @returns {Promise<Counted>}
 */
export async function askForAWhile(
  { ask, admits, denies },
  { lap, firstLap, inFlight, seconds, atLeast = 0 },
) {
  const timeOneIn = inFlight === 1 ? 1 : TIME_ONE_IN
  /** @type {number[]} */
  const timesMs = []
  const beganMs = performance.now()
  const endsMs = beganMs + seconds * 1000
  let laps = 0
  let keys = lap(firstLap)
  let next = 0
  let requests = 0
  let denied = 0

  /** Whether there is another request to make. Moves on to the next lap when one ends. */
  function more() {
    if (next < keys.length) return true
    if (performance.now() >= endsMs && requests >= atLeast) return false
    laps++
    keys = lap(firstLap + laps)
    next = 0
    return true
  }

  async function lane() {
    while (more()) {
      const key = /** @type {string} */ (keys[next++])
      const timed = requests++ % timeOneIn === 0
      const sentMs = timed ? performance.now() : 0
      try {
        if (!admits(await ask(key))) denied++
      } catch (refusal) {
        if (refusal instanceof Error && !denies?.(refusal)) throw refusal
        denied++
      }
      if (timed) timesMs.push(performance.now() - sentMs)
    }
  }

  await Promise.all(Array.from({ length: inFlight }, lane))
  const elapsed = (performance.now() - beganMs) / 1000
  return { requests, denied, laps: laps + 1, seconds: elapsed, ...latenciesOf(timesMs) }
}
