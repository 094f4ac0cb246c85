import { Decision } from '../decision/decision.js'
import type { Refund } from '../engine/question.js'
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import { countsRequests } from '../policy/question-of.js'
import type { Stage } from '../store/stage.js'
import { parseCost } from './ask.js'

/** Changes a charge afterwards: refunds or settles it. */
export interface Refunds {
  /** Refunds what a decision charged, or `units` of it, once. Returns the units given back. */
  refund(decision: Decision, units?: number): Promise<number>
  /** Changes a decision's charge to `actual` units, once: gives the rest back, or charges what is missing. */
  settle(decision: Decision, actual: number): Promise<void>
}

export function createRefunds(stage: Stage): Refunds {
  const refunded = new WeakMap<Decision, number>()
  const settled = new WeakSet<Decision>()

  async function refund(decision: Decision, units = decision?.cost): Promise<number> {
    const charges = chargesOf(decision)
    // Units charged without the store are not in the store: giving them back there would be a gift.
    if (decision.source !== stage.source) return 0
    if (!Number.isInteger(units) || units < 1 || units > decision.cost) {
      const expected = `a whole number from 1 to the decision's cost ${decision.cost}`
      throw unexpected('ERR_HEADGATE_INVALID_COST', 'units', expected, units)
    }
    // A decision is refunded once: a second refund would take another request's units.
    const already = refunded.get(decision) ?? 0
    const due = Math.min(units, decision.cost - already)
    if (due === 0) return 0
    refunded.set(decision, already + due)
    // A limit that counts requests gets its unit back with the last one of the cost, as if there had been no
    // request.
    const isWhole = already + due === decision.cost
    const refunds = charges.flatMap(({ check, chargedAtUs }): Refund[] => {
      if (!countsRequests(check.limit)) return [{ check, units: due, chargedAtUs }]
      return isWhole ? [{ check, units: check.cost, chargedAtUs }] : []
    })
    return refunds.length === 0 ? 0 : Math.min(due, Math.max(0, ...(await stage.refund(refunds))))
  }

  async function settle(decision: Decision, actual: number): Promise<void> {
    const charges = chargesOf(decision)
    const units = parseCost(actual, 'actual')
    if (settled.has(decision)) return
    settled.add(decision)
    const isLocal = decision.source === 'local'
    if (!isLocal && decision.source !== stage.source) return
    const standing = decision.cost - (refunded.get(decision) ?? 0)
    refunded.set(decision, decision.cost)
    if (units === standing) return
    const refunds = charges
      .filter(({ check }) => !countsRequests(check.limit))
      .map(({ check, chargedAtUs }) => {
        const back = { check, units: standing - units, chargedAtUs }
        return isLocal ? { ...back, isLocal } : back
      })
    if (refunds.length > 0) await stage.refund(refunds)
  }

  return { refund, settle }
}

/** A charged estimate whose actual cost is known later. */
export interface Reservation {
  readonly decision: Decision
  /**
   * Settles the actual cost, once: the rest of the estimate comes back, or what is missing is charged whether it
   * fits or not. Unsettled, the estimate stands. Does nothing for a denied request.
   */
  settle(actual: number): Promise<void>
}

export function reservationOf(
  decision: Decision,
  settle: (decision: Decision, actual: number) => Promise<void>,
): Reservation {
  return {
    decision,
    settle: async actual => {
      if (decision.allowed) await settle(decision, actual)
    },
  }
}

/** Returns the charges that a decision made, except places, which are released. */
function chargesOf(decision: Decision): ReturnType<typeof Decision.chargesOf> {
  if (!(decision instanceof Decision)) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'decision', 'what check returned', decision)
  }
  const isUnasked = decision.source === 'open' || decision.source === 'closed'
  const charges = Decision.chargesOf(decision).filter(({ check }) => check.limit.algorithm !== 'concurrency')
  if (charges.length > 0 || isUnasked || decision.source === 'none') return charges
  throw new HeadgateError('ERR_HEADGATE_NOT_CHARGED', 'decision: expected one that charged; this one did not')
}
