/** Detects bytes that come too slowly. */
export interface RateFloor {
  /** Starts over with the full grace. */
  restart(nowMs: number, bytes: number): void
  /** Whether too few bytes have come since; `bytes` is a running total. */
  isBelow(nowMs: number, bytes: number): boolean
}

/**
 * Keeps a credit of time: it runs out in `graceMs`, and every byte buys 1 ÷ rate of a second, up to the full grace.
 * So a fast start does not pay for a body that then stalls. A rate of 0 means no floor.
 */
export function createRateFloor({
  bytesPerSecond,
  graceMs,
}: {
  readonly bytesPerSecond: number
  readonly graceMs: number
}): RateFloor {
  let creditMs = graceMs
  let seenMs = 0
  let seenBytes = 0
  return {
    restart(nowMs, bytes) {
      creditMs = graceMs
      seenMs = nowMs
      seenBytes = bytes
    },
    isBelow(nowMs, bytes) {
      if (bytesPerSecond === 0) return false
      const boughtMs = ((bytes - seenBytes) / bytesPerSecond) * 1_000
      creditMs = Math.min(graceMs, creditMs - (nowMs - seenMs) + boughtMs)
      seenMs = nowMs
      seenBytes = bytes
      return creditMs < 0
    },
  }
}
