import type { Limit } from './limit.js'

/**
 * The numbers that a charge leaves. The caller owns the object and hands it in again: the commonest answer is read at once and
 * never kept, and making an object for each would take as long as the arithmetic.
 */
export class Admission {
  remaining = 0
  resetAfterUs = 0
  nowUs = 0
}

/**
 * An algorithm: pure arithmetic on a state, a limit and a time in integer microseconds.
 * `charge`, `take`, `refund` and `reset` change the state they are handed; all other functions only read it.
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
   * Charges `units` whether they fit or not, because they have been used already; later requests wait for them. Never
   * leaves more than twice the limit used, so that nobody is shut out for good. Returns the units that were charged.
   */
  chargeBeyond(limit: L, state: State, units: number, nowUs: number): number
  /**
   * Takes back up to `units` charged at `chargedAtUs`, the oldest ones when that is null. Returns how many: none of what
   * was charged before a reset. A bucket takes less of those that were held in advance since `heldSinceUs`.
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
   * Forgets what was used. What was charged until now belongs to a former life of the key and is never given back to
   * the new one. A charge made in the same microsecond cannot be told apart and counts as one of the former life.
   */
  reset(limit: L, state: State, nowUs: number): void
  /**
   * Stands for a state of which no more is known than that nothing was left of it and that it is empty at `untilUs`:
   * never has more left than that one. An end later than the limit has any counts as the latest there is.
   */
  usedUp(limit: L, untilUs: number, nowUs: number): State
  /** How long the state can still matter, as of now; after that it may be forgotten without changing any verdict. */
  keepForUs(limit: L, state: State, nowUs: number): number
}
