import { Decision } from '../decision/decision.js'
import type { Admission, Admissions } from '../decision/verdicts.js'
import type { Refund } from '../engine/question.js'
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import { countsRequests } from '../policy/question-of.js'
import type { Stage } from '../store/stage.js'
import { parseCost } from './ask.js'

/** Changes a charge afterwards: refunds or settles it. */
export interface Refunds {
  /** Refunds what a decision charged, or `units` of it, in all never more than it charged. Returns the units given back. */
  refund(decision: Decision, units?: number): Promise<number>
  /** Changes what an admitted request counts to `actual` units, once: gives the rest back, or charges what is missing. */
  settle(decision: Decision, actual: number): Promise<void>
}

/** `isTooLate` says of a settlement that would change something whether the store is closed. */
export function createRefunds(stage: Stage, isTooLate = () => false): Refunds {
  const refunded = new WeakMap<Decision, number>()
  const settled = new WeakSet<Decision>()

  async function refund(decision: Decision, units = decision?.cost): Promise<number> {
    const { binding, shadow } = admissionsOf(decision)
    // Units charged without the store are not in the store: giving them back there would be a gift.
    if (decision.source !== stage.source) return 0
    const charged = binding.filter(isCharged)
    if (charged.length === 0 && (binding.length > 0 || decision.cost === 0)) throw notCharged()
    if (!Number.isInteger(units) || units < 1 || units > decision.cost) {
      const expected = `a whole number from 1 to the decision's cost ${decision.cost}`
      throw unexpected('ERR_HEADGATE_INVALID_COST', 'units', expected, units)
    }
    // Never more than was charged: it would take another request's units.
    const already = refunded.get(decision) ?? 0
    const due = Math.min(units, decision.cost - already)
    if (due === 0) return 0
    refunded.set(decision, already + due)
    // A limit that counts requests gets its unit back with the last one of the cost, as if there had been no
    // request.
    const isWhole = already + due === decision.cost
    const refunds = [...charged, ...shadow.filter(isCharged)].flatMap(({ check, chargedAtUs }): Refund[] => {
      if (countsRequests(check.limit)) return isWhole ? [{ check, units: check.cost, chargedAtUs }] : []
      // A rule in shadow may set another cost than the decision's.
      const left = Math.max(0, check.cost - already)
      const back = isWhole ? left : Math.min(due, left)
      return back === 0 ? [] : [{ check, units: back, chargedAtUs }]
    })
    return refunds.length === 0 ? 0 : Math.min(due, Math.max(0, ...(await stage.refund(refunds))))
  }

  async function settle(decision: Decision, actual: number): Promise<void> {
    const { binding, shadow } = admissionsOf(decision)
    const units = parseCost(actual, 'actual')
    if (settled.has(decision)) return
    settled.add(decision)
    const isLocal = decision.source === 'local'
    if (!isLocal && decision.source !== stage.source) return
    const already = refunded.get(decision) ?? 0
    refunded.set(decision, decision.cost)
    const refunds = [...binding, ...shadow].flatMap(({ check, chargedAtUs }): Refund[] => {
      const back = Math.max(0, check.cost - already) - units
      if (back === 0 || countsRequests(check.limit)) return []
      return [{ check, units: back, chargedAtUs, ...(isLocal && { isLocal }) }]
    })
    if (refunds.length > 0 && !isTooLate()) await stage.refund(refunds)
  }

  return { refund, settle }
}

/** A charged estimate whose actual cost is known later. */
export interface Reservation {
  readonly decision: Decision
  /**
   * Settles the actual cost, once: the rest of the estimate comes back, or what is missing is charged whether it
   * fits or not, also for an estimate of 0 and where the limits are only watched. Unsettled, the estimate stands; so
   * it does after `close()`, with one warning. Does nothing for a denied request.
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

/** Returns the limits that had room for a request; throws for one that was denied or only looked at. */
function admissionsOf(decision: Decision): Admissions {
  if (!(decision instanceof Decision)) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'decision', 'what check returned', decision)
  }
  const isUnasked = decision.source === 'open' || decision.source === 'closed'
  const admissions = isUnasked ? NONE : Decision.admissionsOf(decision)
  if (admissions === null) throw notCharged()
  return admissions
}

const NONE: Admissions = { binding: [], shadow: [] }

/** A place is released, not refunded. */
function isCharged({ check, chargedAtUs }: Admission): boolean {
  return chargedAtUs !== null && check.limit.algorithm !== 'concurrency'
}

function notCharged(): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_NOT_CHARGED', {
    field: 'decision',
    expected: 'one that charged',
    got: 'one that did not',
  })
}
