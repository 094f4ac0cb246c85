import { setImmediate } from 'node:timers/promises'
import { createRandom } from '../sequences.js'
import { latenciesOf } from './latencies.js'

/**
 * Sends requests at random moments, at an average rate, without waiting for answers: nothing groups them, and a
 * contestant that falls behind shows it.
 *
 * @param {import('./contestants/contestant.js').Contestant} contestant
 * @param {{ lap: (lap: number) => readonly string[], firstLap: number, seconds: number, arrivalsPerSecond: number }} order
 * @returns {Promise<import('./loop.js').Counted>}
 */
export async function askAsTheyCome({ ask, admits }, { lap, firstLap, seconds, arrivalsPerSecond }) {
  const random = createRandom(firstLap + 1)
  const gapMs = () => (-Math.log(1 - random()) * 1000) / arrivalsPerSecond
  /** @type {number[]} */
  const timesMs = []
  /** @type {Promise<void>[]} */
  const underWay = []
  const beganMs = performance.now()
  const endsMs = beganMs + seconds * 1000
  let laps = 0
  let keys = lap(firstLap)
  let denied = 0

  /** @param {string} key @param {number} dueMs Latency counts from here, so it includes waiting to be sent. */
  async function request(key, dueMs) {
    if (!admits(await ask(key))) denied++
    timesMs.push(performance.now() - dueMs)
  }

  let next = 0
  for (let dueMs = beganMs; dueMs < endsMs; dueMs += gapMs()) {
    while (performance.now() < dueMs) await setImmediate()
    if (next === keys.length) {
      laps++
      keys = lap(firstLap + laps)
      next = 0
    }
    underWay.push(request(/** @type {string} */ (keys[next++]), dueMs))
  }
  await Promise.all(underWay)
  const elapsed = (performance.now() - beganMs) / 1000
  return { requests: underWay.length, denied, laps: laps + 1, seconds: elapsed, ...latenciesOf(timesMs) }
}
