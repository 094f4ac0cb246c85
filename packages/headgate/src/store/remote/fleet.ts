import type { Timers } from '../../time/clock.js'

/** The answer to a heartbeat. */
export interface Beat {
  /** Processes that reported in the last seconds. */
  readonly live: number
  /** Processes that reported in the last minute. */
  readonly recent: number
  /** Nodes that had acknowledged an earlier beat and no longer know of it. */
  readonly lostWrites: number
}

/** How many processes share the limits, as far as this one knows. */
export interface Fleet {
  /** Those that are live now. */
  live(): number
  /**
   * Those that may be live: the most counted lately. A process that cannot reach the store is not heard of but
   * still admits its share; and what one admitted that has just ended still counts.
   */
  mayBeLive(): number
  stop(): void
}

/**
 * How many answers are looked back on, about a minute. Answers instead of a time, because a store that comes and
 * goes gives few, and the last of them say the least.
 */
const LOOK_BACK = 60

/**
 * Sends a heartbeat every `everyMs` and keeps the number of live processes. While the store is away the last number
 * holds: the fleet is the same, only nobody can count it.
 */
export function createFleet(
  beat: () => Promise<Beat>,
  everyMs: number,
  timers: Timers,
  onLostWrites: () => void,
): Fleet {
  const heard: number[] = []
  let live = 1
  let mayBeLive = 1
  const tick = async (): Promise<void> => {
    try {
      const answer = await beat()
      live = Math.max(1, answer.live)
      heard.push(Math.max(live, answer.recent))
      if (heard.length > LOOK_BACK) heard.shift()
      mayBeLive = Math.max(...heard)
      for (let times = 0; times < answer.lostWrites; times++) onLostWrites()
    } catch {
      // The calls of requests report the same failure.
    }
  }
  let cancel = (): void => {}
  const goOn = (): void => {
    cancel = timers.inBackground(everyMs, goOn)
    void tick()
  }
  if (timers.start === undefined) goOn()
  else timers.start(goOn)
  return { live: () => live, mayBeLive: () => mayBeLive, stop: () => cancel() }
}
