/**
 * Sends each request when it is due. Latency counts from that moment, so it includes waiting for a busy connection or
 * for us: no request is left out because the server was slow (no coordinated omission).
 */

/**
 * @typedef {object} Sent
 * @property {number} request Its index in the schedule.
 * @property {number} sender
 * @property {number} dueMs Since the start.
 * @property {number} lateMs How much later than that we handed it to its connection.
 * @property {number} latencyMs From the moment it was due to the end of its answer.
 * @property {import('./connection.js').Answer} answer
 */

/**
 * @param {import('./schedule.js').Schedule} schedule
 * @param {(sender: number, request: number, done: (answer: import('./connection.js').Answer) => void) => void} send
 * @param {(sent: Sent) => void} tell
 * @param {AbortSignal} [signal] Stops sending; requests in flight are still awaited.
 * @returns {Promise<void>} Once everything that was sent has been answered or lost.
 */
export function sendOnTime({ dueMs, sender }, send, tell, signal) {
  const beganMs = performance.now()
  let next = 0
  let inFlight = 0

  return new Promise(resolve => {
    function endIfDone() {
      if (inFlight === 0 && (next === dueMs.length || signal?.aborted)) resolve()
    }

    function tick() {
      if (signal?.aborted) return endIfDone()
      const nowMs = performance.now() - beganMs
      while (next < dueMs.length && /** @type {number} */ (dueMs[next]) <= nowMs) sendOne(next++)
      if (next < dueMs.length) setTimeout(tick, 1)
      endIfDone()
    }

    /** @param {number} request */
    function sendOne(request) {
      const due = /** @type {number} */ (dueMs[request])
      const from = /** @type {number} */ (sender[request])
      const lateMs = performance.now() - beganMs - due
      inFlight++
      send(from, request, answer => {
        inFlight--
        tell({
          request,
          sender: from,
          dueMs: due,
          lateMs,
          latencyMs: performance.now() - beganMs - due,
          answer,
        })
        endIfDone()
      })
    }

    tick()
  })
}
