/** The time, injected wherever logic needs it. Only this file reads a real clock. */
export interface Clock {
  /** Monotonic microseconds; only differences mean anything. */
  nowUs(): number
  /** Unix time in milliseconds, for people and headers. */
  unixMs(): number
}

/** Timers, injected wherever logic waits, so that a simulation can run without real time passing. */
export interface Timers {
  /** Calls `work` once, after at least `ms`. Returns a function that cancels it. */
  after(ms: number, work: () => void): () => void
  /** The same for work that must not keep the process alive. */
  inBackground(ms: number, work: () => void): () => void
  /** Starts work that runs beside the requests. Default: immediately. */
  start?(work: () => void): void
  /** Calls `work` once the running code and all promises it settled are done. */
  afterThisCode?(work: () => void): void
  /** Calls `work` at the end of this turn of the event loop, when every readable socket has been read. */
  afterThisTurn?(work: () => void): void
}

const originUs = Math.floor(performance.timeOrigin * 1000)
/**
 * Monotonic milliseconds. Bound once, because looking it up through the global takes longer than the call itself.
 */
const monotonicMs: () => number = performance.now.bind(performance)
const RealDate = Date

/**
 * Monotonic within the process, so that a change of the system time does not affect limits. Where a test runner has
 * replaced `Date`, its time counts: its fake timers move limits.
 */
export const systemClock: Clock = {
  nowUs: () => (Date === RealDate ? originUs + Math.floor(monotonicMs() * 1000) : Date.now() * 1000),
  unixMs: () => Date.now(),
}

/** The nearest equivalent without Node's event loop. workerd wants it called without a `this`. */
const soon = (work: () => void): void => queueMicrotask(work)

/** The real timers. */
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
