/** The time, injected wherever logic needs it. The only place that reads a real clock. */
export interface Clock {
  /** Microseconds that never run backwards; only differences mean anything. */
  nowUs(): number
  /** Unix time in milliseconds, for what people and headers read. */
  unixMs(): number
}

/** Waiting, injected wherever logic waits: a simulation waits without letting time pass. */
export interface Timers {
  /** Calls `work` once, `ms` from now at the earliest. Returns what calls it off. */
  after(ms: number, work: () => void): () => void
  /** The same for work that must not keep the process alive. */
  inBackground(ms: number, work: () => void): () => void
  /** Calls `work` when the code that runs now, and all promises it settled, are done. */
  afterThisCode?(work: () => void): void
  /** Calls `work` when this turn of the event loop is over: when every socket that had something has been heard. */
  afterThisTurn?(work: () => void): void
}

/** Microseconds that never run backwards, from some point in time. */
const monotonicUs = chooseMonotonicUs()
const originUs = Math.floor((performance.timeOrigin + performance.now()) * 1000) - monotonicUs()

/** Bound once: reaching either through the global each time takes as long again as reading it. */
function chooseMonotonicUs(): () => number {
  const hrtime = globalThis.process?.hrtime
  if (typeof hrtime === 'function') {
    return () => {
      const time = hrtime()
      return time[0] * 1_000_000 + ((time[1] / 1000) | 0)
    }
  }
  const nowMs = performance.now.bind(performance)
  return () => Math.floor(nowMs() * 1000)
}

/** Monotonic within the process, so that a change of the system's time moves no limit. */
export const systemClock: Clock = {
  nowUs: () => originUs + monotonicUs(),
  unixMs: () => Date.now(),
}

export const systemTimers: Timers = {
  // Where there is no event loop like Node's, a promise of our own is the nearest there is.
  afterThisCode: globalThis.process?.nextTick ?? queueMicrotask,
  afterThisTurn: globalThis.setImmediate ?? queueMicrotask,
  after(ms, work) {
    const timer = setTimeout(work, ms)
    return () => clearTimeout(timer)
  },
  inBackground(ms, work) {
    const timer = setTimeout(work, ms)
    timer.unref?.()
    return () => clearTimeout(timer)
  },
}
