import type { Limit } from './limit.js'

/**
 * The numbers after a charge. The caller owns the object and passes it in again: the commonest answer is read at
 * once and never kept, and allocating an object for each would take as long as the arithmetic.
 */
export class Admission {
  remaining = 0
  resetAfterUs = 0
  nowUs = 0
}

/**
 * An algorithm: pure arithmetic on a state, a limit and a time in integer microseconds. `charge`, `take`, `refund`
 * and `reset` change the state they are given; all other functions only read it.
 */
export interface Algorithm<L extends Limit, State> {
  /** The state of a key nobody has asked for. */
  empty(): State
  /** How long until `cost` fits if nobody else asks: 0 if it fits now, `NEVER` if it is above the capacity. */
  waitUs(limit: L, state: State, cost: number, nowUs: number): number
  /** Records a charge for a cost that fits. Returns the time it counts at, never earlier than the last one. */
  charge(limit: L, state: State, cost: number, nowUs: number): number
  /** Units that fit now. */
  remaining(limit: L, state: State, nowUs: number): number
  /** How long until everything is available again if nobody asks. */
  resetAfterUs(limit: L, state: State, nowUs: number): number
  /**
   * Charges a positive cost that fits, and writes to `into` what `remaining` and `resetAfterUs` would then return.
   * Returns false, with nothing changed, if it does not fit or the clock has stepped back: the functions above
   * handle that. Called one after the other, they would compute the same values four times, half of a decision.
   */
  take(limit: L, state: State, cost: number, nowUs: number, into: Admission): boolean
  /**
   * Charges `units` whether they fit or not, because they have already been used; later requests wait for them.
   * Never leaves more than twice the limit used, so that nobody is shut out for good. Returns the units charged.
   */
  chargeBeyond(limit: L, state: State, units: number, nowUs: number): number
  /**
   * Takes back up to `units` charged at `chargedAtUs`, or the oldest ones if that is null. Returns how many: 0 for
   * charges from before a reset. A bucket takes back fewer of those held in advance since `heldSinceUs`.
   */
  refund(
    limit: L,
    state: State,
    units: number,
    chargedAtUs: number | null,
    nowUs: number,
    heldSinceUs?: number,
  ): number
  /**
   * Forgets what was used. Earlier charges belong to a former life of the key and are never given back to the new
   * one. A charge in the same microsecond cannot be distinguished and counts as one of the former life.
   */
  reset(limit: L, state: State, nowUs: number): void
  /**
   * Returns a stand-in for a state of which only two things are known: nothing was left, and it is empty at
   * `untilUs`. It never has more left than the original. An end later than the limit allows counts as the latest
   * possible.
   */
  usedUp(limit: L, untilUs: number, nowUs: number): State
  /**
   * Returns how long the state can still matter, as of now; after that it may be forgotten without changing any
   * verdict.
   */
  keepForUs(limit: L, state: State, nowUs: number): number
}
