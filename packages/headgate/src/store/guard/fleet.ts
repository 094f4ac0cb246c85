import type { Timers } from '../../clock.js'

/** What came of saying "here I am". */
export interface Beat {
  readonly live: number
  /** Nodes that had acknowledged an earlier beat and do not know of it any more. */
  readonly rewinds: number
}

/** How many processes share the limits, as far as this one knows. */
export interface Fleet {
  live(): number
  stop(): void
}

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
  let live = 1
  const tick = async (): Promise<void> => {
    try {
      const heard = await beat()
      live = Math.max(1, heard.live)
      for (let times = 0; times < heard.rewinds; times++) onRewind()
    } catch {
      // The calls of requests report the same failure.
    }
  }
  let callOff = (): void => {}
  const goOn = (): void => {
    callOff = timers.inBackground(everyMs, goOn)
    void tick()
  }
  goOn()
  return { live: () => live, stop: () => callOff() }
}
