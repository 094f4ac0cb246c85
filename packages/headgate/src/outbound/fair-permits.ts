/**
 * Who has the permits at an upstream, and who is next: the most important first, and among equals whoever has the
 * fewest.
 *
 * A caller's fair part is the limit divided by the callers, as important or more, that have a permit or wait. Requests in flight
 * cannot be called back, so whoever is below its part does not wait for one that is above its own: what others have in
 * excess does not count against it. Each class keeps a part of the limit in the same way.
 *
 * It knows only callers that have a permit or wait, so it grows no further than these.
 */

import { PRIORITIES, type Priority } from '../policy/tier-numbers.js'

export type { Priority }

/** Who asks for a permit, and for what. */
export interface Asking {
  /** The one whose fair part it is taken from. Default: all requests are of one caller. */
  readonly caller?: string
  /** Requests of one kind take about equally long. Default: all are of one kind. */
  readonly kind?: string
  /** Default `normal`. */
  readonly priority?: Priority
}

/** A request that waits for a permit. */
export interface Waiting {
  readonly asking: Asking
}

interface Caller {
  inFlight: number
  /** When it last got a permit, as a count of permits; 0 if never. */
  servedAs: number
  readonly waiting: Waiting[]
}

interface Class {
  inFlight: number
  waiting: number
  readonly callers: Map<string, Caller>
}

/** The share of the limit that each class keeps while others have the rest. */
const KEPT = 0.1

export class FairPermits {
  readonly #classes: Readonly<Record<Priority, Class>> = {
    high: { inFlight: 0, waiting: 0, callers: new Map() },
    normal: { inFlight: 0, waiting: 0, callers: new Map() },
    low: { inFlight: 0, waiting: 0, callers: new Map() },
  }
  #inFlight = 0
  #waiting = 0
  #served = 0

  /** How many wait. */
  get waiting(): number {
    return this.#waiting
  }

  take(asking: Asking): void {
    const { ofClass, caller } = this.#find(asking)
    this.#inFlight++
    ofClass.inFlight++
    caller.inFlight++
    caller.servedAs = ++this.#served
  }

  leave(asking: Asking): void {
    const { ofClass, caller } = this.#find(asking)
    this.#inFlight--
    ofClass.inFlight--
    caller.inFlight--
    this.#forgetIfIdle(asking, caller)
  }

  wait(waiting: Waiting): void {
    const { ofClass, caller } = this.#find(waiting.asking)
    this.#waiting++
    ofClass.waiting++
    caller.waiting.push(waiting)
  }

  /** Ends a wait, however it ended. */
  stopWaiting(waiting: Waiting): void {
    const { ofClass, caller } = this.#find(waiting.asking)
    const index = caller.waiting.indexOf(waiting)
    if (index !== -1) {
      caller.waiting.splice(index, 1)
      this.#waiting--
      ofClass.waiting--
    }
    this.#forgetIfIdle(waiting.asking, caller)
  }

  /** Whether a request may have a permit although the limit is reached, because others have more than their part. */
  mayExceed({ caller = '', priority = 'normal' }: Asking, limit: number): boolean {
    const own = this.#classes[priority]
    if (own.inFlight < this.#inFlight && own.inFlight < keptOf(limit)) return true
    const rank = PRIORITIES.indexOf(priority)
    const known = own.callers.get(caller)
    const callers = this.#callerCount(PRIORITIES.slice(0, rank + 1)) + (known === undefined ? 1 : 0)
    const part = Math.max(1, Math.floor(limit / callers))
    if ((known?.inFlight ?? 0) >= part) return false
    let excess = 0
    for (const { inFlight } of own.callers.values()) excess += Math.max(0, inFlight - part)
    // Less important ones have what they keep; more important ones are not asked to make room.
    for (const lower of PRIORITIES.slice(rank + 1)) {
      excess += Math.max(0, this.#classes[lower].inFlight - keptOf(limit))
    }
    return this.#inFlight - excess < limit
  }

  /** Returns who is next; null if nobody may have a permit. */
  next(limit: number, isFree: boolean, mayBeExceeded: boolean): Waiting | null {
    const waiting = PRIORITIES.filter(priority => this.#classes[priority].waiting > 0)
    const kept = waiting.filter(priority => this.#classes[priority].inFlight < keptOf(limit))
    for (const priority of [...kept, ...waiting]) {
      const first = nextOf(this.#classes[priority])
      if (first !== null && (isFree || (mayBeExceeded && this.mayExceed(first.asking, limit)))) return first
    }
    return null
  }

  /** Returns who gives way if too many wait: of the least important class, the last of the caller with the most. */
  last(): Waiting | null {
    const least = PRIORITIES.findLast(priority => this.#classes[priority].waiting > 0)
    if (least === undefined) return null
    let most: Caller | null = null
    for (const caller of this.#classes[least].callers.values()) {
      if (most === null || caller.waiting.length > most.waiting.length) most = caller
    }
    return most?.waiting.at(-1) ?? null
  }

  #callerCount(priorities: readonly Priority[]): number {
    return priorities.reduce((count, priority) => count + this.#classes[priority].callers.size, 0)
  }

  #find({ caller = '', priority = 'normal' }: Asking): { ofClass: Class; caller: Caller } {
    const ofClass = this.#classes[priority]
    const known = ofClass.callers.get(caller)
    if (known !== undefined) return { ofClass, caller: known }
    const made: Caller = { inFlight: 0, servedAs: 0, waiting: [] }
    ofClass.callers.set(caller, made)
    return { ofClass, caller: made }
  }

  #forgetIfIdle({ caller = '', priority = 'normal' }: Asking, { inFlight, waiting }: Caller): void {
    if (inFlight === 0 && waiting.length === 0) this.#classes[priority].callers.delete(caller)
  }
}

function keptOf(limit: number): number {
  return Math.max(1, Math.floor(limit * KEPT))
}

/** The first of the caller with the fewest in flight; of several, of the one that has not had a turn for longest. */
function nextOf({ callers }: Class): Waiting | null {
  let next: Caller | null = null
  for (const caller of callers.values()) {
    if (caller.waiting.length === 0) continue
    const fewer = next === null ? -1 : caller.inFlight - next.inFlight
    if (fewer < 0 || (fewer === 0 && caller.servedAs < (next?.servedAs ?? 0))) next = caller
  }
  return next?.waiting[0] ?? null
}
