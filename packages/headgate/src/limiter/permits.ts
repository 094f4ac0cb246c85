/**
 * Permits that decisions took and their requests still hold. Each is renewed in the background well before it would
 * expire, and given back by `decision.release()`. A decision that nobody references can never be released, so its
 * permits are not renewed and expire.
 */
import type { Refund, Renewal } from '../check/check.js'
import type { PendingCheck } from '../check/pending-check.js'
import { Decision, type HeldPermits } from '../decision/decision.js'
import type { Store } from '../store/store.js'
import type { Clock, Timers } from '../time/clock.js'

export interface PermitsOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** Called when permits have been given back, so that whoever waits for one can ask. */
  onFreed(permits: readonly Refund[]): void
}

/** How often a permit is renewed in its lifetime, so that one call may be lost and another late. */
const RENEWALS = 3
/** The most permits per call, so that none holds the server up for long. */
const MOST_IN_A_CALL = 100

/** The permits of one decision. */
interface Held {
  readonly renewals: readonly Renewal[]
  readonly everyUs: number
  /**
   * A strong reference until the first renewal: most requests have ended by then, and a weak reference costs more
   * than a permit.
   */
  decision: Decision | WeakRef<Decision>
  renewAtUs: number
}

export class Permits {
  readonly #store: Store
  readonly #options: PermitsOptions
  readonly #held = new Set<Held>()
  #given: Refund[] = []
  #giving: Promise<void> | null = null
  #cancel: (() => void) | null = null
  /** Settles when whatever was held at the end has been given back. */
  #closing: Promise<void> | null = null
  /** The shortest renewal interval among the permits the timer was set for. */
  #timedForUs = Number.POSITIVE_INFINITY

  constructor(store: Store, options: PermitsOptions) {
    this.#store = store
    this.#options = options
  }

  /** Holds what a check took until its decision is released. */
  hold(check: PendingCheck, decision: Decision): void {
    const isLocal = check.source === 'local'
    const renewals = check.permits().map(permit => ({ ...permit, ...(isLocal && { isLocal }) }))
    if (renewals.length > 0) Decision.hold(decision, this.#holdAll(decision, renewals))
  }

  /** Gives back whatever is still held. */
  async close(): Promise<void> {
    this.#cancelTimer()
    this.#given.push(...[...this.#held].flatMap(({ renewals }) => renewals.map(toRefund)))
    this.#held.clear()
    // Not after this turn: the store closes beside it and takes nothing from then on.
    this.#closing ??= this.#giveAllBack()
    await this.#closing
  }

  #holdAll(decision: Decision, renewals: readonly Renewal[]): HeldPermits {
    const everyUs = Math.min(...renewals.map(holdForUs)) / RENEWALS
    const one: Held = { renewals, everyUs, decision, renewAtUs: this.#options.clock.nowUs() + everyUs }
    // A check that was in flight when its limiter closed may still be allowed. Nobody renews its permit any more.
    if (this.#closing === null) {
      this.#held.add(one)
      if (everyUs < this.#timedForUs) this.#cancelTimer()
      this.#schedule()
    }
    let released: Promise<void> | null = null
    return {
      release: () => {
        this.#held.delete(one)
        // Whoever outlives the limiter has nothing left to give back, and a closed store must not be asked.
        released ??= this.#closing ?? this.#giveBack(renewals.map(toRefund))
        return released
      },
      abandon: () => void this.#held.delete(one),
    }
  }

  /** Makes one call for everything that ends in a turn of the event loop, or returns at once if there is nothing to call. */
  #giveBack(refunds: readonly Refund[]): Promise<void> {
    if (this.#store.source === 'memory') return this.#give(refunds)
    this.#given.push(...refunds)
    const afterThisTurn = this.#options.timers.afterThisTurn ?? queueMicrotask
    this.#giving ??= new Promise(resolve => afterThisTurn(() => resolve(this.#giveAllBack())))
    return this.#giving
  }

  async #giveAllBack(): Promise<void> {
    const refunds = this.#given
    this.#given = []
    this.#giving = null
    await Promise.all(inCalls(refunds).map(some => this.#give(some)))
  }

  async #give(refunds: readonly Refund[]): Promise<void> {
    await ignoring(() => this.#store.refund(refunds))
    this.#options.onFreed(refunds)
  }

  #schedule(): void {
    if (this.#cancel !== null || this.#held.size === 0) return
    let everyUs = Number.POSITIVE_INFINITY
    for (const one of this.#held) everyUs = Math.min(everyUs, one.everyUs)
    // Twice as often as the most urgent needs it, so that one due in between is late by at most half.
    this.#timedForUs = everyUs
    this.#cancel = this.#options.timers.inBackground(Math.max(1, Math.floor(everyUs / 2000)), () => {
      this.#cancelTimer()
      this.#renewDue()
      this.#schedule()
    })
  }

  #cancelTimer(): void {
    this.#cancel?.()
    this.#cancel = null
    this.#timedForUs = Number.POSITIVE_INFINITY
  }

  #renewDue(): void {
    const nowUs = this.#options.clock.nowUs()
    const due: Renewal[] = []
    for (const one of this.#held) {
      if (one.renewAtUs > nowUs) continue
      one.renewAtUs = nowUs + one.everyUs
      if (!(one.decision instanceof WeakRef)) one.decision = new WeakRef(one.decision)
      if (one.decision.deref() === undefined) this.#held.delete(one)
      else due.push(...one.renewals)
    }
    for (const some of inCalls(due)) void ignoring(() => this.#store.renew?.(some))
  }
}

function holdForUs({ check }: Renewal): number {
  return check.limit.algorithm.holdForUs?.(check.limit) ?? Number.POSITIVE_INFINITY
}

function toRefund({ check, takenAtUs, isLocal }: Renewal): Refund {
  return { check, units: check.cost, chargedAtUs: takenAtUs, ...(isLocal && { isLocal }) }
}

function inCalls<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  const calls: Item[][] = []
  for (let first = 0; first < items.length; first += MOST_IN_A_CALL)
    calls.push(items.slice(first, first + MOST_IN_A_CALL))
  return calls
}

/** A permit that could not be given back or renewed expires, so there is nobody to tell. */
async function ignoring(work: () => unknown): Promise<void> {
  try {
    await work()
  } catch {}
}
