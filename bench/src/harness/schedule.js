/**
 * Requests that are due at fixed times, whatever happens to earlier ones: an open loop.
 *
 * @typedef {{ readonly startMs?: number, readonly endMs?: number, readonly perSecond: number }} Sender When it sends, and how often.
 * @typedef {{ readonly dueMs: Float64Array, readonly sender: Uint32Array }} Schedule In the order of time, from the start.
 */

/**
 * Spaces each sender's requests evenly and staggers their starts, so that a thousand senders are a steady stream.
 *
 * @param {readonly Sender[]} senders
 * @param {number} lengthMs
 * @returns {Schedule}
 */
export function scheduleOf(senders, lengthMs) {
  /** @type {{ atMs: number, from: number }[]} */
  const all = []
  for (const [from, { startMs = 0, endMs = lengthMs, perSecond }] of senders.entries()) {
    const everyMs = 1000 / perSecond
    // The golden ratio spreads any number of senders evenly.
    const phase = (from * 0.618_033_988_75) % 1
    for (let atMs = startMs + phase * everyMs; atMs < Math.min(endMs, lengthMs); atMs += everyMs)
      all.push({ atMs, from })
  }
  all.sort((one, other) => one.atMs - other.atMs)
  return {
    dueMs: Float64Array.from(all, ({ atMs }) => atMs),
    sender: Uint32Array.from(all, ({ from }) => from),
  }
}
