import type { Timers } from '../../time/clock.js'

/** The answer to a heartbeat. */
export interface Beat {
  /** Processes that said so in the last seconds. */
  readonly live: number
  /** Processes that said so in the last minute. */
  readonly recent: number
  /** Nodes that had acknowledged an earlier beat and do not know of it any more. */
  readonly rewinds: number
}

/** How many processes share the limits, as far as this one knows. */
export interface Fleet {
  /** Those that are there now. */
  live(): number
  /**
   * Those that may be there: the most that were counted of late. A process that does not get through to the store is
   * not heard of, and it still admits its share; so is one that has just ended, and what it admitted still counts.
   */
  mayBeLive(): number
  stop(): void
}

/**
 * The answers that are looked back on, about a minute of them. Answers instead of a time, because a store that comes and
 * goes gives few, and the last of them say least.
 */
const LOOK_BACK = 60

/**
 * Says "here I am" every `everyMs` and keeps the number of processes that did so lately. While the store is away the
 * last number holds: the fleet is the same, only nobody can count it.
 */
export function createFleet(
  beat: () => Promise<Beat>,
  everyMs: number,
  timers: Timers,
  onRewind: () => void,
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
      for (let times = 0; times < answer.rewinds; times++) onRewind()
    } catch {
      // The calls of requests report the same failure.
    }
  }
  let callOff = (): void => {}
  const goOn = (): void => {
    callOff = timers.inBackground(everyMs, goOn)
    void tick()
  }
  if (timers.start === undefined) goOn()
  else timers.start(goOn)
  return { live: () => live, mayBeLive: () => mayBeLive, stop: () => callOff() }
}
