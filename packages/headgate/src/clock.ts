/** The time, injected wherever logic needs it. The only place that reads a real clock. */
export interface Clock {
  /** Microseconds that never run backwards; only differences mean anything. */
  nowUs(): number
  /** Unix time in milliseconds, for what people and headers read. */
  unixMs(): number
}

const originUs = Math.floor(performance.timeOrigin * 1000)
/**
 * Milliseconds that never run backwards. Bound once: reaching it through the global each time takes longer than the
 * reading itself.
 */
export const monotonicMs: () => number = performance.now.bind(performance)

/** Monotonic within the process, so that a change of the system's time moves no limit. */
export const systemClock: Clock = {
  nowUs: () => originUs + Math.floor(monotonicMs() * 1000),
  unixMs: () => Date.now(),
}
