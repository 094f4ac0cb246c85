/**
 * Passive health: a server that fails several times in a row is left alone for a while, twice as long each time, and
 * then tried with one request. Nobody asks it anything for that; what clients ask is enough to tell.
 */

/** Whether a server may be sent requests. */
export interface ServerHealth {
  /** Whether it may be asked now: one that was left alone may, once its time is over and nobody is trying it. */
  isUp(nowMs: number): boolean
  /** It is asked now. Whoever asks one that was left alone is its trial; the others wait for what comes of it. */
  asked(nowMs: number): void
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
  const isUp = (nowMs: number) => failures < FAILURES_IN_A_ROW || nowMs >= restsUntilMs
  return {
    isUp,
    asked(nowMs) {
      if (failures >= FAILURES_IN_A_ROW && isUp(nowMs)) restsUntilMs = nowMs + restMs
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
