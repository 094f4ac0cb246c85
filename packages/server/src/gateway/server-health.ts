/**
 * Passive health checks: a server that fails several times in a row is left out for a while, twice as long each
 * time, and then tried with one request. Only clients' requests are used for that.
 */

/** Tracks whether a server may be sent requests. */
export interface ServerHealth {
  /** Whether it may be used now: one that was left out may, once its time is over and nobody is trying it. */
  isUp(nowMs: number): boolean
  /** It is used now. The first request to one that was left out is its trial; the others wait for the outcome. */
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
