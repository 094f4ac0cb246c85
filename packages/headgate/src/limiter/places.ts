/**
 * Places that decisions took and their requests still hold. Each is renewed in the background well before it would
 * expire, and given back by `decision.release()`. A decision that nobody references can never be released, so its
 * places are not renewed and expire.
 */
import type { Decision } from '../decision/decision.js'
import type { HeldPlace, HeldPlaces } from '../decision/verdicts.js'
import type { Refund, Renewal } from '../engine/question.js'
import type { Stage } from '../store/stage.js'
import type { Clock, Timers } from '../time/clock.js'

export interface Places {
  /** Holds what a decision took until it is released. */
  hold(decision: Decision, places: readonly HeldPlace[]): HeldPlaces
  /** Gives back whatever is still held. */
  close(): Promise<void>
}

export interface PlacesOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** Called when places have been given back, so that whoever waits for one can ask. */
  onFreed?(places: readonly Refund[]): void
}

/** How often a place is renewed in its lifetime, so that one call may be lost and another late. */
const RENEWALS = 3
/** The most places per call, so that none holds the server up for long. */
const MOST_IN_A_CALL = 100

interface Held {
  readonly renewals: readonly Renewal[]
  readonly everyUs: number
  /**
   * A strong reference until the first renewal: most requests have ended by then, and a weak reference costs more
   * than a place.
   */
  decision: Decision | WeakRef<Decision>
  renewAtUs: number
}

export function createPlaces(stage: Stage, { clock, timers, onFreed }: PlacesOptions): Places {
  const held = new Set<Held>()
  let given: Refund[] = []
  let giving: Promise<void> | null = null
  let callOff: (() => void) | null = null
  /** Settles when whatever was held at the end has been given back. */
  let closing: Promise<void> | null = null
  /** The shortest renewal interval among the places the timer was set for. */
  let timedForUs = Number.POSITIVE_INFINITY

  /**
   * Makes one call for everything that ends in a turn of the event loop, or returns at once if there is nothing to
   * call.
   */
  function giveBack(refunds: readonly Refund[]): Promise<void> {
    if (stage.source === 'memory') return give(refunds)
    given.push(...refunds)
    giving ??= new Promise(resolve => (timers.afterThisTurn ?? queueMicrotask)(() => resolve(giveAllBack())))
    return giving
  }

  async function giveAllBack(): Promise<void> {
    const refunds = given
    given = []
    giving = null
    await Promise.all(inCalls(refunds).map(give))
  }

  async function give(refunds: readonly Refund[]): Promise<void> {
    await ignoring(() => stage.refund(refunds))
    onFreed?.(refunds)
  }

  function schedule(): void {
    if (callOff !== null || held.size === 0) return
    let everyUs = Number.POSITIVE_INFINITY
    for (const one of held) everyUs = Math.min(everyUs, one.everyUs)
    // Twice as often as the most urgent needs it, so that one due in between is late by at most half.
    timedForUs = everyUs
    callOff = timers.inBackground(Math.max(1, Math.floor(everyUs / 2000)), () => {
      cancelTimer()
      renewDue()
      schedule()
    })
  }

  function cancelTimer(): void {
    callOff?.()
    callOff = null
    timedForUs = Number.POSITIVE_INFINITY
  }

  function renewDue(): void {
    const nowUs = clock.nowUs()
    const due: Renewal[] = []
    for (const one of held) {
      if (one.renewAtUs > nowUs) continue
      one.renewAtUs = nowUs + one.everyUs
      if (!(one.decision instanceof WeakRef)) one.decision = new WeakRef(one.decision)
      if (one.decision.deref() === undefined) held.delete(one)
      else due.push(...one.renewals)
    }
    for (const some of inCalls(due)) void ignoring(() => stage.renew(some))
  }

  return {
    hold(decision, places) {
      const isLocal = decision.source === 'local'
      const renewals = places.map(place => ({ ...place, ...(isLocal && { isLocal }) }))
      const everyUs = Math.min(...places.map(({ check }) => holdForUs(check.limit))) / RENEWALS
      const one: Held = {
        renewals,
        everyUs,
        decision,
        renewAtUs: clock.nowUs() + everyUs,
      }
      // A check that was in flight when its limiter closed may still be allowed. Nobody renews its place any more.
      if (closing === null) {
        held.add(one)
        if (everyUs < timedForUs) cancelTimer()
        schedule()
      }
      let released: Promise<void> | null = null
      return {
        release() {
          held.delete(one)
          // Whoever outlives the limiter has nothing left to give back, and a closed store must not be asked.
          released ??= closing ?? giveBack(renewals.map(toRefund))
          return released
        },
        letExpire: () => void held.delete(one),
      }
    },
    async close() {
      cancelTimer()
      given.push(...[...held].flatMap(({ renewals }) => renewals.map(toRefund)))
      held.clear()
      // Not after this turn: the stage closes beside it and takes nothing from then on.
      closing ??= giveAllBack()
      await closing
    },
  }
}

function holdForUs(limit: HeldPlace['check']['limit']): number {
  return limit.algorithm.holdForUs?.(limit) ?? Number.POSITIVE_INFINITY
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

/** A place that could not be given back or renewed expires, so there is nobody to tell. */
async function ignoring(work: () => unknown): Promise<void> {
  try {
    await work()
  } catch {}
}
