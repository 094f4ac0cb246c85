/** Asks an algorithm the way a store does. */
import { algorithmOf, type State } from '../../src/engine/algorithms.js'
import type { Limit } from '../../src/engine/limit.js'
import { after, type Cost, costUnits, type Gap } from './arbitraries.js'

/** Charges the cost if it fits. Returns the wait, 0 if it was charged, and the time at which the charge counts. */
export function request(
  limit: Limit,
  state: State,
  cost: number,
  nowUs: number,
): { readonly waitUs: number; readonly chargedAtUs: number | null } {
  const algorithm = algorithmOf(limit)
  const waitUs = algorithm.waitUs(limit, state, cost, nowUs)
  const chargedAtUs = waitUs === 0 && cost > 0 ? algorithm.charge(limit, state, cost, nowUs) : null
  return { waitUs, chargedAtUs }
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
