import type { Limit } from './limit.js'
import type { SingleAnswer } from './single.js'

/**
 * What an algorithm is: pure arithmetic on a state, a limit and a time in integer microseconds.
 * `charge` and `refund` change the state they are handed and nothing else; all other functions only read it.
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
   * Wait, charge, remaining and reset in one go, for a positive cost on a clock that has not stepped back; null where
   * it does not apply. Always the same answer as one after the other: half of a decision was working the same things
   * out four times.
   */
  take?(limit: L, state: State, cost: number, nowUs: number): SingleAnswer | null
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
