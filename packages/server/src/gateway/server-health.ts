/**
 * Passive health: a server that fails several times in a row is left alone for a while, twice as long each time, and
 * then tried with one request. Nobody asks it anything for that; what clients ask is enough to tell.
 */

/** Whether a server may be sent requests. */
export interface ServerHealth {
  /** Whether it may be asked now. One that was left alone is, by the first that comes after its time. */
  isUp(nowMs: number): boolean
  succeeded(): void
  /** It could not be reached, or broke off without an answer. */
  failed(nowMs: number): void
}

const FAILURES_IN_A_ROW = 3
const FIRST_REST_MS = 1_000
const LONGEST_REST_MS = 30_000

export function createServerHealth(): ServerHealth {
  let failures = 0
  let restMs = FIRST_REST_MS
  let restsUntilMs = 0
  return {
    isUp(nowMs) {
      if (failures < FAILURES_IN_A_ROW) return true
      if (nowMs < restsUntilMs) return false
      // This request is the trial; the others wait for its outcome.
      restsUntilMs = nowMs + restMs
      return true
    },
    succeeded() {
      failures = 0
      restMs = FIRST_REST_MS
    },
    failed(nowMs) {
      failures++
      if (failures < FAILURES_IN_A_ROW) return
      if (failures > FAILURES_IN_A_ROW) restMs = Math.min(restMs * 2, LONGEST_REST_MS)
      restsUntilMs = nowMs + restMs
    },
  }
}
