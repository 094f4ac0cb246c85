/**
 * How many requests an upstream may have under way at once, found out from how long it takes to answer.
 *
 * An upstream that has room answers in the same time however many ask; one that has none lets them wait, and answers take
 * as much longer as there are more of them. So the limit follows the gradient between how long an answer takes when
 * nobody waits (`restUs`) and how long answers take now: `limit × tolerance × rest / now`, never less than half at a time,
 * and a few more so that new room is found. Netflix's concurrency-limits and Envoy's adaptive concurrency have the idea;
 * here the time at rest needs no schedule of its own:
 *
 * - A time below it takes its place at once.
 * - When the load has halved and answers take as long as before, they did not wait for each other: the upstream itself
 *   has become slower, and that is its time at rest from now on.
 * - Where the load does not halve by itself for long, the limit is halved for one window to see.
 *
 * Invariant: `floor ≤ limit ≤ ceiling`. No clock, no timers: times are handed in, in microseconds.
 */

export interface LatencyGradientOptions {
  /** The limit is never below it. */
  readonly floor: number
  /** The limit is never above it. */
  readonly ceiling: number
}

/** Answers may take so much longer than at rest before the limit falls: times vary without anybody waiting. */
const TOLERANCE = 1.5
const LEAST_GRADIENT = 0.5
/** A limit that is used less than that is not what holds anybody back, and does not grow. */
const USED = 0.8
/** At half the load, times that are still so much of what they were had another cause than the load. */
const UNCHANGED = 0.8
/** A window is long enough for its mean to mean something. */
const LEAST_SAMPLES = 10
const LEAST_WINDOW_US = 100_000
/** However few the answers: a quiet upstream is judged once a second. */
const ENOUGH_WINDOW_US = 1_000_000
const WINDOWS_BETWEEN_PROBES = 64
/** After the time at rest was raised by more than times vary. */
const WINDOWS_TO_MAKE_SURE = 8

/** A window's requests: those that began in it, all under the same limit. */
interface Window {
  /** Requests that began before it say nothing about it. */
  readonly number: number
  readonly startedAtUs: number
  answered: number
  failed: number
  sumUs: number
  /** The most that were under way when one began. */
  load: number
}

/** Times under a load that has made them longer. */
interface Mark {
  readonly load: number
  readonly latencyUs: number
}

export class LatencyGradient {
  readonly #floor: number
  readonly #ceiling: number
  #limit: number
  #restUs = Number.POSITIVE_INFINITY
  /** Until answers took longer for the first time, the limit doubles. */
  #isSettled = false
  #window: Window
  #mark: Mark | null = null
  #windowsUntilProbe = WINDOWS_BETWEEN_PROBES
  /** The limit to go back to, while it is halved to see. */
  #probedFrom: number | null = null

  constructor({ floor, ceiling }: LatencyGradientOptions, nowUs: number) {
    this.#floor = floor
    this.#ceiling = ceiling
    this.#limit = floor
    this.#window = openWindow(0, nowUs)
  }

  /** How many may be under way at once. */
  get limit(): number {
    return Math.floor(this.#limit)
  }

  /** How long an answer takes when nobody waits, in microseconds; infinite before the first. */
  get restUs(): number {
    return this.#restUs
  }

  /** A request begins, beside which `underWay` are under way, itself included. Returns the window it belongs to. */
  begin(underWay: number): number {
    this.#window.load = Math.max(this.#window.load, underWay)
    return this.#window.number
  }

  /** A request of a window was answered. */
  answered(window: number, latencyUs: number, nowUs: number): void {
    if (window !== this.#window.number) return
    this.#window.answered++
    this.#window.sumUs += latencyUs
    this.#closeWindow(nowUs)
  }

  /** A request of a window was not answered, or with the word that there is too much to do. */
  failed(window: number, nowUs: number): void {
    if (window !== this.#window.number) return
    this.#window.failed++
    this.#closeWindow(nowUs)
  }

  /** A request of a window was given up after a time: an answer takes at least that long. */
  abandoned(window: number, afterUs: number, nowUs: number): void {
    // Of those who leave early nothing is known.
    if (afterUs > TOLERANCE * this.#restUs) this.answered(window, afterUs, nowUs)
  }

  #closeWindow(nowUs: number): void {
    const { number, startedAtUs, answered, failed, sumUs, load } = this.#window
    const lastedUs = nowUs - startedAtUs
    const latencyUs = answered === 0 ? null : sumUs / answered
    if (lastedUs < LEAST_WINDOW_US) return
    if (answered + failed < LEAST_SAMPLES && lastedUs < ENOUGH_WINDOW_US) return
    // Quick answers come first: of a window that is too short only they would be counted.
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
    // A load that the limit does not hold back changes by itself, which is as good.
    if (this.#windowsUntilProbe-- <= 0 && load >= USED * this.limit) this.#probe(latencyUs, load)
  }

  /** Holds the times against those under a load that was twice as much. */
  #learn(latencyUs: number, load: number): void {
    const mark = this.#mark
    if (mark !== null && latencyUs * UNCHANGED > mark.latencyUs) {
      // It has become worse meanwhile, so that nothing can be said yet.
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
    // A limit that nobody uses up is no evidence that a higher one would do.
    if (next <= limit || load >= USED * this.limit) this.#setLimit(next)
  }

  #probe(latencyUs: number, load: number): void {
    this.#windowsUntilProbe = WINDOWS_BETWEEN_PROBES
    this.#mark = { load, latencyUs }
    this.#probedFrom = this.#limit
    this.#setLimit(this.#limit / 2)
  }

  /** Halves again for as long as that makes answers quicker. */
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
