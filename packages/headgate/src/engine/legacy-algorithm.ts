/** The functions that the embedded store calls one by one, derived from `decide` and `refund` of an algorithm. */
import {
  type Limit,
  NOT_CHARGED,
  type Outcome,
  type Rows,
  type Algorithm as Whole,
} from '../algorithms/algorithm.js'

/** The numbers after a charge. */
export class Admission {
  remaining = 0
  resetAfterUs = 0
  nowUs = 0
}

/** A state of some algorithm; only that algorithm looks inside. */
export type State = object

export interface Algorithm<L extends Limit, S> {
  empty(): S
  waitUs(limit: L, state: S, cost: number, nowUs: number): number
  charge(limit: L, state: S, cost: number, nowUs: number): number
  remaining(limit: L, state: S, nowUs: number): number
  resetAfterUs(limit: L, state: S, nowUs: number): number
  /** Charges a cost that fits; false, with nothing changed, if it does not or the clock has stepped back. */
  take(limit: L, state: S, cost: number, nowUs: number, into: Admission): boolean
  reset(limit: L, state: S, nowUs: number): void
  usedUp(limit: L, untilUs: number, nowUs: number): S
}

/** Rows of which several can be open at once. */
export type OpenRows = Rows<State> & { view(row: number): State }

const SCRATCH: Outcome = { waitUs: 0, remaining: 0, resetAfterUs: 0, chargedAtUs: NOT_CHARGED }

const KNOWN = new WeakMap<Whole, Algorithm<Limit, State>>()

export function algorithmOf({ algorithm }: Limit): Algorithm<Limit, State> {
  const known = KNOWN.get(algorithm) ?? derive(algorithm)
  KNOWN.set(algorithm, known)
  return known
}

export function rowsOf({ algorithm }: Limit): OpenRows {
  return algorithm.rows() as OpenRows
}

function derive(whole: Whole): Algorithm<Limit, State> {
  function look(limit: Limit, state: State, cost: number, nowUs: number, mayCharge = false): Outcome {
    whole.decide(limit, state, cost, nowUs, mayCharge, SCRATCH)
    return SCRATCH
  }
  return {
    ...(whole as Whole & { empty(): State; usedUp(limit: Limit, untilUs: number, nowUs: number): State }),
    waitUs: (limit, state, cost, nowUs) => look(limit, state, cost, nowUs).waitUs,
    charge(limit, state, cost, nowUs) {
      const { chargedAtUs } = look(limit, state, cost, nowUs, true)
      if (chargedAtUs !== NOT_CHARGED) return chargedAtUs
      // It fitted before another check of its question was charged to the same state.
      whole.refund(limit, state, -cost, null, nowUs)
      return nowUs
    },
    remaining: (limit, state, nowUs) => look(limit, state, 0, nowUs).remaining,
    resetAfterUs: (limit, state, nowUs) => look(limit, state, 0, nowUs).resetAfterUs,
    take(limit, state, cost, nowUs, into) {
      // A state from a later time, before the clock stepped back, is kept longer than one in which nothing was written.
      const keepForUs = whole.keepForUs(limit, whole.empty(), nowUs)
      if (whole.kind === 'permits' || whole.keepForUs(limit, state, nowUs) > keepForUs) return false
      Object.assign(into, look(limit, state, cost, nowUs, true), { nowUs })
      return SCRATCH.chargedAtUs !== NOT_CHARGED
    },
  }
}
