/**
 * Which quotas end with a fixed window. Of such a one, "nothing is left until then" holds for everybody. Where a window slides or
 * a bucket refills, the same headers say when everything is there again, and others may call long before.
 *
 * A fixed window is told to end at the same time for as long as it lasts. The time at which everything is there again moves
 * with what is called, and by as much as the clock while nothing is left. So a host must have repeated a time for longer
 * than rounding and travel can explain.
 */

/** Times are told in whole seconds, and answers travel for different times. */
const TOLERANCE_MS = 1_500
/** In this time, one that moves has moved on by more than that and a rounding. */
const PROVED_AFTER_MS = 4_000
/** How many hosts are remembered; beyond that the one that was not heard of for longest is forgotten. */
const MAX_HOSTS = 1_000

interface Told {
  readonly endsAtMs: number
  readonly sinceMs: number
}

export class FixedWindows {
  readonly #told = new Map<string, Told>()

  /**
   * Learns from an answer that a host's quota is reset in so many milliseconds. Returns until when its window lasts, as
   * exactly as its answers tell: the earliest, because they round up. Null if it may not be a fixed one.
   */
  leftMs(host: string, resetMs: number, nowMs: number): number | null {
    const known = this.#told.get(host)
    const saidMs = nowMs + resetMs
    const isSame = known !== undefined && Math.abs(saidMs - known.endsAtMs) <= TOLERANCE_MS
    const endsAtMs = isSame ? Math.min(saidMs, known.endsAtMs) : saidMs
    const sinceMs = isSame ? known.sinceMs : nowMs
    this.#told.delete(host)
    this.#told.set(host, { endsAtMs, sinceMs })
    if (this.#told.size > MAX_HOSTS) this.#told.delete(this.#told.keys().next().value as string)
    return nowMs - sinceMs >= PROVED_AFTER_MS ? Math.max(0, endsAtMs - nowMs) : null
  }
}
