/**
 * Finds how many requests an upstream may have in flight at once, from how long it takes to answer.
 *
 * An upstream with spare capacity answers in the same time however many ask. Without it, requests queue, and answers take
 * longer in proportion. So the limit follows the gradient between the latency without queueing (`restUs`) and the latency
 * now: `limit × tolerance × rest / now`, at least half of it at a time, plus a little to find new room. The idea is that
 * of Netflix's concurrency-limits and Envoy's adaptive concurrency; here the latency at rest needs no schedule of its own:
 *
 * - A lower latency replaces it at once.
 * - If the load has halved and answers take as long as before, they were not queueing: the upstream itself has become
 *   slower, and this is its new latency at rest.
 * - If the load does not halve by itself for long, the limit is halved for one window as a probe.
 *
 * Invariant: `floor ≤ limit ≤ ceiling`. No clock, no timers: times are passed in, in microseconds.
 */

export interface LatencyGradientOptions {
  /** The lowest the limit may get. */
  readonly floor: number
  /** The highest the limit may get. */
  readonly ceiling: number
}

/** How much longer than at rest answers may take before the limit falls: latency varies without any queueing. */
const TOLERANCE = 1.5
const LEAST_GRADIENT = 0.5
/** A limit that is used less than this holds nobody back, and does not grow. */
const USED = 0.8
/** If latency at half the load is still at least this share of what it was, the load was not the cause. */
const UNCHANGED = 0.8
/** Makes a window long enough for its mean to be meaningful. */
const LEAST_SAMPLES = 10
const LEAST_WINDOW_US = 100_000
/** Closes a window however few the answers, so that a quiet upstream is judged once a second. */
const ENOUGH_WINDOW_US = 1_000_000
const WINDOWS_BETWEEN_PROBES = 64
/** Used after the latency at rest was raised by more than the usual variation. */
const WINDOWS_TO_MAKE_SURE = 8

/** The requests that began in one window, all under the same limit. */
interface Window {
  /** Requests that began before it say nothing about it. */
  readonly number: number
  readonly startedAtUs: number
  answered: number
  failed: number
  sumUs: number
  /** The most requests in flight when one began. */
  load: number
}

/** The latency under a load that has increased it. */
interface Mark {
  readonly load: number
  readonly latencyUs: number
}

export class LatencyGradient {
  readonly #floor: number
  readonly #ceiling: number
  #limit: number
  #restUs = Number.POSITIVE_INFINITY
  /** The limit doubles until answers take longer for the first time. */
  #isSettled = false
  #window: Window
  #mark: Mark | null = null
  #windowsUntilProbe = WINDOWS_BETWEEN_PROBES
  /** The limit to return to after a probe. */
  #probedFrom: number | null = null

  constructor({ floor, ceiling }: LatencyGradientOptions, nowUs: number) {
    this.#floor = floor
    this.#ceiling = ceiling
    this.#limit = floor
    this.#window = openWindow(0, nowUs)
  }

  /** How many may be in flight at once. */
  get limit(): number {
    return Math.floor(this.#limit)
  }

  /** The latency without queueing, in microseconds; infinite before the first answer. */
  get restUs(): number {
    return this.#restUs
  }

  /** Records the start of a request, with `underWay` in flight including itself. Returns its window. */
  begin(underWay: number): number {
    this.#window.load = Math.max(this.#window.load, underWay)
    return this.#window.number
  }

  /** Records an answer to a request of a window. */
  answered(window: number, latencyUs: number, nowUs: number): void {
    if (window !== this.#window.number) return
    this.#window.answered++
    this.#window.sumUs += latencyUs
    this.#closeWindow(nowUs)
  }

  /** Records that a request of a window failed or signalled overload. */
  failed(window: number, nowUs: number): void {
    if (window !== this.#window.number) return
    this.#window.failed++
    this.#closeWindow(nowUs)
  }

  /** Records that a request of a window was given up: an answer takes at least that long. */
  abandoned(window: number, afterUs: number, nowUs: number): void {
    // An early departure says nothing.
    if (afterUs > TOLERANCE * this.#restUs) this.answered(window, afterUs, nowUs)
  }

  #closeWindow(nowUs: number): void {
    const { number, startedAtUs, answered, failed, sumUs, load } = this.#window
    const lastedUs = nowUs - startedAtUs
    const latencyUs = answered === 0 ? null : sumUs / answered
    if (lastedUs < LEAST_WINDOW_US) return
    if (answered + failed < LEAST_SAMPLES && lastedUs < ENOUGH_WINDOW_US) return
    // Fast answers come first, and too short a window would count only those.
    if (latencyUs !== null && lastedUs < 2 * latencyUs) return
    this.#window = openWindow(number + 1, nowUs)
    const failedShare = failed / (answered + failed)
    if (latencyUs === null) {
      this.#probedFrom = null
      this.#follow(0, load)
    } else this.#judge(latencyUs, failedShare, load)
  }

  #judge(latencyUs: number, failedShare: number, load: number): void {
    this.#learn(latencyUs, load)
    if (this.#probedFrom !== null) {
      this.#goOnProbing(this.#probedFrom)
      return
    }
    const gradient = Math.min((TOLERANCE * this.#restUs) / latencyUs, 1 - failedShare)
    if (gradient >= 1) this.#mark = null
    else this.#mark ??= { load, latencyUs }
    this.#follow(gradient, load)
    // A load below the limit varies by itself, which works as well as a probe.
    if (this.#windowsUntilProbe-- <= 0 && load >= USED * this.limit) this.#probe(latencyUs, load)
  }

  /** Compares the latency with that under twice the load. */
  #learn(latencyUs: number, load: number): void {
    const mark = this.#mark
    if (mark !== null && latencyUs * UNCHANGED > mark.latencyUs) {
      // It has become worse in the meantime, so nothing can be concluded yet.
      this.#mark = { load, latencyUs }
    } else if (mark !== null && load <= Math.max(this.#floor, mark.load / 2)) {
      const isUnchanged = latencyUs > UNCHANGED * mark.latencyUs
      if (isUnchanged) this.#raiseRest(latencyUs)
      this.#mark = isUnchanged ? null : { load, latencyUs }
    }
    this.#restUs = Math.min(this.#restUs, latencyUs)
  }

  #raiseRest(latencyUs: number): void {
    if (latencyUs > TOLERANCE * this.#restUs) {
      this.#windowsUntilProbe = Math.min(this.#windowsUntilProbe, WINDOWS_TO_MAKE_SURE)
    }
    this.#restUs = latencyUs
  }

  #follow(gradient: number, load: number): void {
    const limit = this.#limit
    if (gradient < 1) this.#isSettled = true
    const room = this.#isSettled ? Math.sqrt(limit) : limit
    const next = limit * Math.min(1, Math.max(LEAST_GRADIENT, gradient)) + room
    // An unused limit is no evidence that a higher one would work.
    if (next <= limit || load >= USED * this.limit) this.#setLimit(next)
  }

  #probe(latencyUs: number, load: number): void {
    this.#windowsUntilProbe = WINDOWS_BETWEEN_PROBES
    this.#mark = { load, latencyUs }
    this.#probedFrom = this.#limit
    this.#setLimit(this.#limit / 2)
  }

  /** Keeps halving for as long as that makes answers faster. */
  #goOnProbing(from: number): void {
    if (this.#mark !== null && this.#limit > this.#floor) {
      this.#setLimit(this.#limit / 2)
      return
    }
    this.#probedFrom = null
    this.#mark = null
    this.#setLimit(from)
  }

  #setLimit(limit: number): void {
    this.#limit = Math.min(this.#ceiling, Math.max(this.#floor, limit))
  }
}

function openWindow(number: number, startedAtUs: number): Window {
  return { number, startedAtUs, answered: 0, failed: 0, sumUs: 0, load: 0 }
}
