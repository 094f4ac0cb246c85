/**
 * Finds how many requests an upstream may have in flight at once, from how long it takes to answer.
 *
 * An upstream with spare capacity answers in the same time however many ask. Without it, requests queue, and answers take
 * longer in proportion. So the limit follows the slowdown, the latency as a multiple of that without queueing:
 * `limit × tolerance / slowdown`, plus a little to find new room. The idea is that of Netflix's concurrency-limits and
 * Envoy's adaptive concurrency; here the latency at rest needs no schedule of its own:
 *
 * - A lower latency replaces it at once.
 * - If the load has halved and answers take as long as before, they were not queueing: the upstream itself has become
 *   slower, and this is its new latency at rest.
 * - If the load does not halve by itself for long, the limit is halved for one window as a probe.
 *
 * A request that has no answer yet, or was given up, is a censored sample: its answer takes at least that long. It
 * can show an overload, and does so before any answer comes, but never what the latency at rest is. Each kind of
 * request has a latency at rest of its own, and the median counts, so that slow ones do not make the others look slow.
 *
 * Invariant: `floor ≤ limit ≤ ceiling`. No clock, no timers: times are passed in, in microseconds.
 */

export interface LatencyGradientOptions {
  /** The lowest the limit may get. */
  readonly floor: number
  /** The highest the limit may get. */
  readonly ceiling: number
}

/** A request in flight. */
export interface Flight {
  readonly kind: string
  readonly beganUs: number
  /** The number of its window. */
  readonly window: number
}

/** How much longer than at rest answers may take before the limit falls: latency varies without any queueing. */
const TOLERANCE = 1.5
/** Below it there is no doubt, and the limit falls to what the upstream still gets done. */
const LEAST_GRADIENT = 0.5
/** Requests in flight that have waited this long on average show an overload: without one they are half way. */
const WAITING = 2
/** Above it nobody queues. */
const UNQUEUED = TOLERANCE / 1.2
/** A limit that is used less than this holds nobody back, and does not grow. */
const USED = 0.8
/** If latency at half the load is still at least this share of what it was, the load was not the cause. */
const UNCHANGED = 0.8
/** A load that is so much higher shows by the latency whether it matters. */
const MORE = 1.5
/** With more than this share of requests given up, the answers are those of the lucky ones. */
const MOST_CENSORED = 0.2
/** Makes a window long enough for its median to be meaningful. */
/** The share of answers that makes a kind count for how long a window lasts. */
const COMMON = 0.25
const LEAST_NEEDED = 4
const MOST_NEEDED = 10
const MOST_SAMPLES = 256
const LEAST_WINDOW_US = 100_000
/** Closes a window however few the answers, so that a quiet upstream is judged once a second. */
const ENOUGH_WINDOW_US = 1_000_000
const WINDOWS_BETWEEN_PROBES = 64
/** Used at the floor, where no further fall tells whether load is the cause. */
const WINDOWS_AT_FLOOR = 2
/** Used after the latency at rest was raised by more than the usual variation. */
const WINDOWS_TO_MAKE_SURE = 8
/** A pause of this length under load is rather ours than the upstream's. */
const STALL_US = 100_000
/** How often the requests in flight are looked at, at most. */
const LOOK_EVERY_US = 10_000

/** The requests that began in one window, all under the same limit. */
interface Window {
  /** Requests that began before it say nothing about its latency. */
  readonly number: number
  readonly startedAtUs: number
  /** Slowdowns of what has been answered or given up; the newest beyond a number. */
  readonly slowdowns: number[]
  /** Latencies of answers. */
  readonly answers: Map<string, { count: number; sumUs: number }>
  answered: number
  abandoned: number
  failed: number
  /** The most requests in flight. */
  load: number
  /** The sum of the latencies at rest of all that was answered during this window, whenever it began. */
  doneUs: number
}

/** The slowdown under a load that has caused it. */
interface Mark {
  readonly load: number
  /** Infinite if known only from below. */
  readonly slowdown: number
  /** Requests worked on at once meanwhile, by what was answered. */
  readonly done: number
}

export class LatencyGradient {
  readonly #floor: number
  readonly #ceiling: number
  #limit: number
  readonly #rest = new RestLatencies()
  readonly #inFlight = new Set<Flight>()
  #lookAtUs = 0
  #calledAtUs = 0
  /** Since when this process has been seen at work without a pause. */
  #awakeSinceUs = 0
  /** The limit doubles until answers take longer for the first time. */
  #isSettled = false
  #window: Window
  #mark: Mark | null = null
  #windowsUntilProbe = WINDOWS_BETWEEN_PROBES
  /** For how many windows answers have been slow at the floor. */
  #slowAtFloor = 0
  /** The limit before it last fell to what the upstream got done. */
  #fellFrom = 0
  /** The limit to return to after a probe. */
  #probedFrom: number | null = null

  constructor({ floor, ceiling }: LatencyGradientOptions, nowUs: number) {
    this.#floor = floor
    this.#ceiling = ceiling
    this.#limit = floor
    this.#window = openWindow(0, nowUs, 0)
  }

  /** How many may be in flight at once. */
  get limit(): number {
    return Math.floor(this.#limit)
  }

  /** The latency without queueing, in microseconds; infinite before the first answer of that kind. */
  restUs(kind = ''): number {
    return this.#rest.of(kind)
  }

  /** Records the start of a request, with `inFlight` in flight including itself. */
  begin(inFlight: number, nowUs: number, kind = ''): Flight {
    const flight = { kind: this.#rest.nameOf(kind), beganUs: nowUs, window: this.#window.number }
    this.#window.load = Math.max(this.#window.load, inFlight)
    this.#inFlight.add(flight)
    return flight
  }

  /** Records an answer. */
  answered(flight: Flight, nowUs: number): void {
    this.#inFlight.delete(flight)
    const { kind, beganUs, window } = flight
    const latencyUs = nowUs - beganUs
    const restUs = this.#rest.of(kind)
    this.#window.doneUs += Math.min(restUs, latencyUs)
    if (window !== this.#window.number) return
    const { answers } = this.#window
    const ofKind = answers.get(kind) ?? { count: 0, sumUs: 0 }
    answers.set(kind, ofKind)
    ofKind.count++
    ofKind.sumUs += latencyUs
    this.#window.answered++
    // The first of a kind are compared with each other.
    const comparedUs = Number.isFinite(restUs) ? restUs : ofKind.sumUs / ofKind.count
    this.#addSlowdown(latencyUs / Math.max(1, comparedUs))
    this.#closeWindow(nowUs)
  }

  /** Records that a request failed or signalled overload. */
  failed(flight: Flight, nowUs: number): void {
    this.#inFlight.delete(flight)
    if (flight.window !== this.#window.number) return
    this.#window.failed++
    this.#closeWindow(nowUs)
  }

  /** Records that a request was given up: an answer takes at least that long. */
  abandoned(flight: Flight, nowUs: number): void {
    this.#inFlight.delete(flight)
    const slowdown = (nowUs - flight.beganUs) / this.#rest.of(flight.kind)
    // An early departure says nothing.
    if (flight.window !== this.#window.number || !(slowdown > TOLERANCE)) return
    this.#window.abandoned++
    this.#addSlowdown(slowdown)
    this.#closeWindow(nowUs)
  }

  /** Records that a request has ended in a way that says nothing. */
  forget(flight: Flight): void {
    this.#inFlight.delete(flight)
  }

  /** Looks at how long requests in flight have been waiting: an upstream that answers nothing is noticed by that. */
  look(nowUs: number): void {
    // This process may have been busy itself, with answers waiting to be read.
    if (nowUs - this.#calledAtUs > STALL_US) this.#awakeSinceUs = nowUs
    this.#calledAtUs = nowUs
    if (nowUs < this.#lookAtUs) return
    this.#lookAtUs = nowUs + LOOK_EVERY_US
    if (nowUs - this.#window.startedAtUs < LEAST_WINDOW_US) return
    const waiting = this.#waitingSlowdowns(nowUs)
    const slowdowns = [...this.#window.slowdowns, ...waiting]
    const isEnough =
      slowdowns.length >= this.#enoughSamples || this.#window.startedAtUs + ENOUGH_WINDOW_US <= nowUs
    const slowdown = medianOf(slowdowns)
    if (isEnough && slowdown > WAITING) this.#judgeWindow(nowUs, slowdown, false)
  }

  /** At least how slow those are that have no answer yet, by how long they have waited in this window. */
  #waitingSlowdowns(nowUs: number): number[] {
    const sinceUs = Math.max(this.#window.startedAtUs, this.#awakeSinceUs)
    const slowdowns: number[] = []
    for (const { kind, beganUs } of this.#inFlight) {
      slowdowns.push((nowUs - Math.max(beganUs, sinceUs)) / this.#rest.of(kind))
    }
    return slowdowns
  }

  /** A low limit has few answers, and must not wait long for them. */
  get #enoughSamples(): number {
    return Math.min(MOST_NEEDED, Math.max(LEAST_NEEDED, 2 * this.limit))
  }

  #addSlowdown(slowdown: number): void {
    const { slowdowns, answered, abandoned } = this.#window
    slowdowns[(answered + abandoned - 1) % MOST_SAMPLES] = slowdown
  }

  #closeWindow(nowUs: number): void {
    const { startedAtUs, slowdowns, answers, answered, abandoned, failed } = this.#window
    const lastedUs = nowUs - startedAtUs
    if (lastedUs < LEAST_WINDOW_US) return
    if (answered + abandoned + failed < this.#enoughSamples && lastedUs < ENOUGH_WINDOW_US) return
    // Fast answers come first, and too short a window would count only those.
    if (lastedUs < 2 * leastMeanOf(answers, answered)) return
    const isKnown = answered > 0 && abandoned <= MOST_CENSORED * (answered + abandoned)
    this.#judgeWindow(nowUs, slowdowns.length === 0 ? null : medianOf(slowdowns), isKnown)
  }

  /** `isKnown`: the slowdown is that of answers, and not only known to be at least so much. */
  #judgeWindow(nowUs: number, slowdown: number | null, isKnown: boolean): void {
    const closed = this.#window
    this.#window = openWindow(closed.number + 1, nowUs, this.#inFlight.size)
    if (slowdown === null) {
      this.#probedFrom = null
      this.#follow(0, closed.load)
    } else this.#judge(closed, slowdown, isKnown, closed.doneUs / (nowUs - closed.startedAtUs))
  }

  #judge(window: Window, slowdown: number, isKnown: boolean, done: number): void {
    const { answered, abandoned, failed, load } = window
    const now: Mark = { load, slowdown: isKnown ? slowdown : Number.POSITIVE_INFINITY, done }
    const isRaised = this.#learn(window, now)
    const gradient = Math.min(
      TOLERANCE / (isRaised ? 1 : slowdown),
      1 - failed / (answered + abandoned + failed || 1),
    )
    const isOverloaded = gradient < (isKnown ? LEAST_GRADIENT : 1)
    if (this.#probedFrom !== null && (isKnown || !isOverloaded)) {
      this.#goOnProbing(this.#probedFrom)
      return
    }
    this.#probedFrom = null
    if (gradient >= 1) this.#mark = null
    else this.#mark ??= now
    if (isOverloaded) this.#fall(done)
    else this.#follow(gradient, load)
    this.#slowAtFloor = isKnown && gradient < 1 && this.limit <= this.#floor ? this.#slowAtFloor + 1 : 0
    // A load below the limit varies by itself, which works as well as a probe.
    const isDue = this.#windowsUntilProbe-- <= 0 || this.#slowAtFloor > WINDOWS_AT_FLOOR
    if (isDue && load >= USED * this.limit) this.#probe(now)
  }

  /** Compares the slowdown with that under another load. Returns whether that was not the cause. */
  #learn({ answers }: Window, now: Mark): boolean {
    const mark = this.#mark
    let isRaised = false
    const isLower = mark !== null && now.load < mark.load && now.load <= Math.max(this.#floor, mark.load / 2)
    const isHigher =
      mark !== null && now.load > mark.load && now.load >= Math.min(MORE * mark.load, this.#ceiling)
    if (mark !== null && now.slowdown * UNCHANGED > mark.slowdown && !isHigher) {
      // It has become worse in the meantime, so nothing can be concluded yet.
      this.#mark = now
    } else if (mark !== null && (isHigher || isLower)) {
      const [lower, higher] = now.load < mark.load ? [now, mark] : [mark, now]
      isRaised = lower.slowdown > UNCHANGED * higher.slowdown && Number.isFinite(lower.slowdown)
      this.#mark = isRaised ? null : now
      if (isRaised) this.#raiseRest(answers, now.slowdown, higher.done)
    }
    for (const [kind, { count, sumUs }] of answers) this.#rest.add(kind, count, sumUs)
    return isRaised
  }

  #raiseRest(answers: Window['answers'], slowdown: number, done: number): void {
    if (slowdown > TOLERANCE) {
      this.#windowsUntilProbe = Math.min(this.#windowsUntilProbe, WINDOWS_TO_MAKE_SURE)
    }
    for (const [kind, { count, sumUs }] of answers) this.#rest.raise(kind, sumUs / count)
    // More were worked on at once than it seemed by the old latency at rest.
    const from = this.#probedFrom ?? this.#limit
    this.#probedFrom = null
    this.#setLimit(Math.max(from, TOLERANCE * done * slowdown))
  }

  /** Lowers the limit to what the upstream gets done: by Little's law, the requests it works on at once. */
  #fall(done: number): void {
    this.#isSettled = true
    this.#fellFrom = this.#limit
    this.#setLimit(Math.min(this.#limit, TOLERANCE * done + 1))
  }

  #follow(gradient: number, load: number): void {
    const limit = this.#limit
    if (gradient < 1) this.#isSettled = true
    // After a short stall the way back is known.
    const isKnownToFit = gradient > UNQUEUED && limit < this.#fellFrom / 2
    const room = this.#isSettled && !isKnownToFit ? Math.sqrt(limit) : limit
    const next = limit * Math.min(1, Math.max(LEAST_GRADIENT, gradient)) + room
    // An unused limit is no evidence that a higher one would work.
    if (next <= limit || load >= USED * this.limit) this.#setLimit(next)
  }

  #probe(mark: Mark): void {
    this.#windowsUntilProbe = WINDOWS_BETWEEN_PROBES
    this.#slowAtFloor = 0
    this.#mark = mark
    this.#probedFrom = this.#limit
    // At the floor the load can only be compared with a higher one.
    this.#setLimit(this.limit > this.#floor ? this.#limit / 2 : this.#limit * 2)
  }

  /** Keeps halving for as long as that makes answers faster. */
  #goOnProbing(from: number): void {
    const isFaster = this.#mark !== null && this.#limit < from
    if (isFaster && this.#limit > this.#floor) {
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

function openWindow(number: number, startedAtUs: number, load: number): Window {
  return {
    number,
    startedAtUs,
    slowdowns: [],
    answers: new Map(),
    answered: 0,
    abandoned: 0,
    failed: 0,
    load,
    doneUs: 0,
  }
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0
}

/** The least mean latency of the kinds that a quarter of the answers are of. Slower ones must not delay a judgement. */
function leastMeanOf(answers: Window['answers'], answered: number): number {
  let leastUs = Number.POSITIVE_INFINITY
  for (const { count, sumUs } of answers.values()) {
    if (count >= COMMON * answered) leastUs = Math.min(leastUs, sumUs / count)
  }
  return Number.isFinite(leastUs) ? leastUs : 0
}

/** The latency without queueing of each kind of request, in microseconds: the least mean of a batch of answers. */
interface Rest {
  us: number
  /** Answers since the last mean. */
  count: number
  sumUs: number
}

/** How many kinds are told apart; further ones are one kind. */
const MOST_KINDS = 64
const OTHER = '\0other'
/** Few answers are fast by chance. */
const BATCH = 10

class RestLatencies {
  readonly #byKind = new Map<string, Rest>()

  /** Returns the name under which a kind is known. */
  nameOf(kind: string): string {
    return this.#byKind.has(kind) || this.#byKind.size < MOST_KINDS ? kind : OTHER
  }

  /** Infinite before the first answer. */
  of(kind: string): number {
    return Math.max(1, this.#byKind.get(kind)?.us ?? Number.POSITIVE_INFINITY)
  }

  /** Adds answers. Until there is a batch of them, the first mean holds. */
  add(kind: string, count: number, sumUs: number): void {
    const known = this.#byKind.get(kind)
    if (known === undefined) {
      this.#byKind.set(kind, { us: sumUs / count, count: 0, sumUs: 0 })
      return
    }
    known.count += count
    known.sumUs += sumUs
    if (known.count < BATCH) return
    known.us = Math.min(known.us, known.sumUs / known.count)
    known.count = 0
    known.sumUs = 0
  }

  raise(kind: string, us: number): void {
    this.#byKind.set(kind, { us, count: 0, sumUs: 0 })
  }
}
