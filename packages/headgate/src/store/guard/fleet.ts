import type { Timers } from '../../clock.js'

/** How many processes share the limits, as far as this one knows. */
export interface Fleet {
  live(): number
  stop(): void
}

/**
 * Says "here I am" every `everyMs` and keeps the number of processes that did so lately. While the store is away the
 * last number holds: the fleet is the same, only nobody can count it.
 */
export function createFleet(beat: () => Promise<number>, everyMs: number, timers: Timers): Fleet {
  let live = 1
  const tick = async (): Promise<void> => {
    try {
      live = Math.max(1, await beat())
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
