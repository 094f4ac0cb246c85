/**
 * An async function that does nothing: what it scores is the most the measuring loop could show for anybody.
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
 * The time and whose turn it is, and then nothing: no state is read, no answer made, and the promise is there already.
 * Whoever limits by key and time does at least this, so no limiter behind a promise can be ahead of it.
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
