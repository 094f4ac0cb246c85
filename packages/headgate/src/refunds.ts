import { Decision } from './decision/decision.js'
import { HeadgateError, unexpected } from './errors.js'
import type { Store } from './store/store.js'

/** Gives back what a decision of this store charged, or `units` of it, once. Returns the units given back. */
export function createRefunds(store: Store): (decision: Decision, units?: number) => Promise<number> {
  const refunded = new WeakMap<Decision, number>()
  return async (decision, units = decision?.cost) => {
    if (!(decision instanceof Decision)) {
      throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'decision', 'what check returned', decision)
    }
    // What was decided without the store is not in the store: giving it back there would be a gift.
    if (decision.source !== store.source) return 0
    const charges = Decision.chargesOf(decision)
    if (charges.length === 0) {
      throw new HeadgateError(
        'ERR_HEADGATE_NOT_CHARGED',
        'decision: expected one that charged; this one did not',
      )
    }
    if (!Number.isInteger(units) || units < 1 || units > decision.cost) {
      const expected = `a whole number from 1 to the decision's cost ${decision.cost}`
      throw unexpected('ERR_HEADGATE_INVALID_COST', 'units', expected, units)
    }
    // A decision is given back once: a second refund of it would take another request's units.
    const already = refunded.get(decision) ?? 0
    const due = Math.min(units, decision.cost - already)
    if (due === 0) return 0
    refunded.set(decision, already + due)
    const given = await store.refund(
      charges.map(({ check, chargedAtUs }) => ({ check, units: due, chargedAtUs })),
    )
    return Math.max(0, ...given)
  }
}
