/** Asks an algorithm the way a store does, and by single questions that `decide` answers together. */
import { type Limit, NOT_CHARGED, type Outcome } from '../../src/algorithms/algorithm.ts'
import { after, type Cost, costUnits, type Gap } from './arbitraries.ts'

/** A state of some algorithm. */
export type State = object

/** What `decide` writes. */
function decide(limit: Limit, state: State, units: number, nowUs: number, mayCharge = true): Outcome {
  const out: Outcome = {
    waitUs: Number.NaN,
    remaining: Number.NaN,
    resetAfterUs: Number.NaN,
    chargedAtUs: Number.NaN,
  }
  limit.algorithm.decide(limit, state, units, nowUs, mayCharge, out)
  return out
}

/** The functions of an algorithm that tests ask for by themselves. */
export interface Driven {
  empty(): State
  /** 0 if it fits now, `NEVER` if it is above the capacity. */
  waitUs(limit: Limit, state: State, cost: number, nowUs: number): number
  /** Charges a cost that fits. */
  charge(limit: Limit, state: State, cost: number, nowUs: number): number
  remaining(limit: Limit, state: State, nowUs: number): number
  resetAfterUs(limit: Limit, state: State, nowUs: number): number
  chargeBeyond(limit: Limit, state: State, units: number, nowUs: number): void
  refund(
    limit: Limit,
    state: State,
    units: number,
    chargedAtUs: number | null,
    nowUs: number,
    heldSinceUs?: number,
  ): number
  reset(limit: Limit, state: State, nowUs: number): void
  usedUp(limit: Limit, untilUs: number, nowUs: number): State
  keepForUs(limit: Limit, state: State, nowUs: number): number
}

export function algorithmOf({ algorithm }: Limit): Driven {
  return {
    empty: () => algorithm.empty() as State,
    waitUs: (limit, state, cost, nowUs) => decide(limit, state, cost, nowUs, false).waitUs,
    charge(limit, state, cost, nowUs) {
      const { chargedAtUs } = decide(limit, state, cost, nowUs)
      if (chargedAtUs === NOT_CHARGED) throw new Error(`${cost} units did not fit`)
      return chargedAtUs
    },
    remaining: (limit, state, nowUs) => decide(limit, state, 0, nowUs, false).remaining,
    resetAfterUs: (limit, state, nowUs) => decide(limit, state, 0, nowUs, false).resetAfterUs,
    chargeBeyond: (limit, state, units, nowUs) => void algorithm.refund(limit, state, -units, null, nowUs),
    refund: (limit, state, units, chargedAtUs, nowUs, heldSinceUs) =>
      algorithm.refund(limit, state, units, chargedAtUs, nowUs, heldSinceUs),
    reset: (limit, state, nowUs) => algorithm.reset(limit, state, nowUs),
    usedUp: (limit, untilUs, nowUs) => algorithm.usedUp(limit, untilUs, nowUs) as State,
    keepForUs: (limit, state, nowUs) => algorithm.keepForUs(limit, state, nowUs),
  }
}

/** Charges the cost if it fits. Returns the wait, 0 if it was charged, and the time at which the charge counts. */
export function request(
  limit: Limit,
  state: State,
  cost: number,
  nowUs: number,
): { readonly waitUs: number; readonly chargedAtUs: number | null } {
  const { waitUs, chargedAtUs } = decide(limit, state, cost, nowUs)
  return { waitUs, chargedAtUs: chargedAtUs === NOT_CHARGED ? null : chargedAtUs }
}

/** Plays a steady life and returns the time and state it ended with. */
export function live(
  limit: Limit,
  startUs: number,
  requests: readonly { readonly gap: Gap; readonly cost: Cost }[],
): { readonly state: State; readonly nowUs: number } {
  const state = algorithmOf(limit).empty()
  let nowUs = startUs
  for (const { gap, cost } of requests) {
    nowUs = after(nowUs, limit, gap)
    request(limit, state, costUnits(limit, cost), nowUs)
  }
  return { state, nowUs }
}

/** Copies a state, so that it stays as it is while the original goes on. */
export function copyOf(limit: Limit, state: State): State {
  return Object.assign(algorithmOf(limit).empty(), structuredClone(state))
}
