/**
 * An async function that does nothing. Its score is the most that the measuring loop can show for anybody.
 *
 * @returns {import('./contestant.js').Contestant}
 */
export function createHarness() {
  const answer = { allowed: true }
  return {
    ask: async () => answer,
    admits: given => /** @type {{ allowed: boolean }} */ (given).allowed,
    forget: () => {},
  }
}

/**
 * Reads the time and looks up the key, but reads no state and creates neither answer nor promise. Every limiter by key
 * and time does at least this, so none behind a promise can be faster.
 *
 * @returns {import('./contestant.js').Contestant}
 */
export function createLookUp() {
  const ready = Promise.resolve({ allowed: true })
  /** @type {Map<string, number>} */
  const known = new Map()
  const nowMs = performance.now.bind(performance)
  let latestMs = 0
  return {
    ask(key) {
      latestMs = nowMs()
      if (known.get(key) === undefined) known.set(key, latestMs)
      return ready
    },
    admits: given => /** @type {{ allowed: boolean }} */ (given).allowed,
    forget: () => known.clear(),
  }
}
