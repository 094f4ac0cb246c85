import type { Clock } from '../time/clock.js'

/** A clock that stands still until it is moved. It may be moved back, as servers' clocks sometimes are. */
export interface ManualClock extends Clock {
  /** Moves the time by this many microseconds. */
  advanceUs(us: number): void
  /** Moves the time by this many milliseconds. */
  advanceMs(ms: number): void
}

/** A round time in 2027, on the boundary of every window that divides an hour. */
export const CASES_START_US = 1_800_000_000_000_000

/** Creates a clock that only its caller moves. */
export function manualClock(startUs: number = CASES_START_US): ManualClock {
  let nowUs = startUs
  const advanceUs = (us: number): void => {
    nowUs += us
  }
  return {
    nowUs: () => nowUs,
    unixMs: () => Math.floor(nowUs / 1000),
    advanceUs,
    advanceMs: ms => advanceUs(ms * 1000),
  }
}
