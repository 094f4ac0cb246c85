/**
 * The measuring loops. Each returns how many requests were denied.
 * A process runs one contestant, so the calls in these loops have one target and compile as they would in an app.
 */

/** @typedef {import('../contestants/contestant.js').Contestant} Contestant */

/**
 * Makes one request after the other and awaits each.
 *
 * @param {Contestant} contestant
 * @param {Iterable<string>} requests
 */
export async function askInTurn({ ask, admits }, requests) {
  let denied = 0
  for (const key of requests) {
    try {
      if (!admits(await ask(key))) denied++
    } catch (refusal) {
      if (refusal instanceof Error) throw refusal
      denied++
    }
  }
  return denied
}

/**
 * Makes one request after the other, for a synchronous contestant.
 *
 * @param {Contestant} contestant
 * @param {Iterable<string>} requests
 */
export function askAtOnce({ ask, admits }, requests) {
  let denied = 0
  for (const key of requests) if (!admits(ask(key))) denied++
  return denied
}

export const IN_FLIGHT = 64

/**
 * Keeps `IN_FLIGHT` requests under way, as a busy server does.
 *
 * @param {Contestant} contestant
 * @param {readonly string[]} requests
 */
export async function askInLanes({ ask, admits }, requests) {
  let denied = 0
  let next = 0
  async function lane() {
    while (next < requests.length) {
      const key = /** @type {string} */ (requests[next++])
      try {
        if (!admits(await ask(key))) denied++
      } catch (refusal) {
        if (refusal instanceof Error) throw refusal
        denied++
      }
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  return denied
}
