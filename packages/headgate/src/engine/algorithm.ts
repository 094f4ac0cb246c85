import type { Admission } from './admission.js'
import type { Limit } from './limit.js'

/**
 * What an algorithm is: pure arithmetic on a state, a limit and a time in integer microseconds.
 * `charge`, `take` and `refund` change the state they are handed; all other functions only read it.
 */
export interface Algorithm<L extends Limit, State> {
  /** The state of a key nobody has asked for. */
  empty(): State
  /** How long until `cost` fits if nobody else asks: 0 when it fits now, `NEVER` when it is above the capacity. */
  waitUs(limit: L, state: State, cost: number, nowUs: number): number
  /** Writes a charge down, for a cost that fits. Returns the time it counts at, never earlier than the last one. */
  charge(limit: L, state: State, cost: number, nowUs: number): number
  /** Units that fit now. */
  remaining(limit: L, state: State, nowUs: number): number
  /** How long until everything is available again if nobody asks. */
  resetAfterUs(limit: L, state: State, nowUs: number): number
  /**
   * Charges a positive cost that fits and writes to `into` what `remaining` and `resetAfterUs` would say then. False,
   * with nothing changed, when it does not fit or the clock has stepped back: that is for the functions above to say.
   * One after the other they would work the same things out four times, half of a decision.
   */
  take(limit: L, state: State, cost: number, nowUs: number, into: Admission): boolean
  /**
   * Takes back up to `units` charged at `chargedAtUs`, the oldest ones when that is null. Returns how many. A bucket
   * takes less of those that were held in advance since `heldSinceUs`.
   */
  refund(
    limit: L,
    state: State,
    units: number,
    chargedAtUs: number | null,
    nowUs: number,
    heldSinceUs?: number,
  ): number
  /** How long the state can still matter, as of now; after that it may be forgotten without changing any verdict. */
  keepForUs(limit: L, state: State, nowUs: number): number
}
