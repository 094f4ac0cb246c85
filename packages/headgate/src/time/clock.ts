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
  /** Begins what goes on beside the requests. Left out: at once. */
  start?(work: () => void): void
  /** Calls `work` when the code that runs now, and all promises it settled, are done. */
  afterThisCode?(work: () => void): void
  /** Calls `work` when this turn of the event loop is over: when every socket that had something has been heard. */
  afterThisTurn?(work: () => void): void
}

const originUs = Math.floor(performance.timeOrigin * 1000)
/**
 * Milliseconds that never run backwards. Bound once: reaching it through the global each time takes longer than the
 * reading itself.
 */
const monotonicMs: () => number = performance.now.bind(performance)

/** Monotonic within the process, so that a change of the system's time moves no limit. */
export const systemClock: Clock = {
  nowUs: () => originUs + Math.floor(monotonicMs() * 1000),
  unixMs: () => Date.now(),
}

/** Where there is no event loop like Node's, this is the nearest there is. workerd wants to be called without a `this`. */
const soon = (work: () => void): void => queueMicrotask(work)

export const systemTimers: Timers = {
  afterThisCode: globalThis.process?.nextTick ?? soon,
  afterThisTurn: globalThis.setImmediate ?? soon,
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
