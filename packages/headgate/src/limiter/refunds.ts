import type { Check, Refund } from '../check/check.js'
import { parseCost } from '../check/check-options.js'
import type { Admission, Admissions } from '../check/pending-check.js'
import { countsRequests } from '../check/plan.js'
import { Decision, policyOf } from '../decision/decision.js'
import { HeadgateError, invalidOption, unexpected } from '../errors/headgate-error.js'
import { rejectUnknown, unknownName } from '../errors/reject-unknown.js'
import { shownName } from '../errors/shown-text.js'
import { parseRefundBound, type RefundBound } from '../policy/refund-rule.js'
import { checkBy } from '../store/ask-store.js'
import type { Store } from '../store/store.js'

/** How much of a charge comes back. */
export interface RefundOptions {
  /** Default: all of it. */
  readonly units?: number
  /**
   * Bounds what comes back to a caller: to what a limit admits, such as `slidingWindowLog({ limit: 100, window: '1m' })`, or
   * with `'limit'` to what the limits themselves admit, once more. Beyond it nothing is given back. Several bounds all hold.
   */
  readonly atMost?: RefundBound | readonly RefundBound[]
}

/** Changes charges afterwards: refunds or settles them. */
export class Refunds {
  readonly #store: Store
  readonly #refunded = new WeakMap<Decision, number>()
  readonly #settled = new WeakSet<Decision>()

  readonly #isTooLate: () => boolean

  /** `isTooLate` says of a settlement that would change something whether the store is closed. */
  constructor(store: Store, isTooLate: () => boolean = () => false) {
    this.#store = store
    this.#isTooLate = isTooLate
  }

  /** Refunds what a decision charged, or `units` of it, in all never more than it charged. Returns the units given back. */
  async refund(decision: Decision, given?: number | RefundOptions): Promise<number> {
    const { units = decision?.cost, atMost } = optionsOf(given)
    const { binding: admitted, shadow } = admissionsOf(decision)
    // Units charged without the store are not in the store: giving them back there would let the caller use more.
    if (decision.source !== this.#store.source) return 0
    const charged = admitted.filter(isCharged)
    if (charged.length === 0 && (admitted.length > 0 || decision.cost === 0)) throw notCharged()
    if (!Number.isInteger(units) || units < 1 || units > decision.cost) {
      const expected = `a whole number from 1 to the decision's cost ${decision.cost}`
      throw unexpected('ERR_HEADGATE_INVALID_COST', 'units', expected, units)
    }
    // Never more than was charged: it would take another request's units.
    const already = this.#refunded.get(decision) ?? 0
    const due = Math.min(units, decision.cost - already)
    if (due === 0) return 0
    this.#refunded.set(decision, already + due)
    // A limit that counts requests gets its unit back with the last one of the cost, as if there had been no request.
    const isWhole = already + due === decision.cost
    const backOf = ({ check, chargedAtUs }: Admission): Refund[] => {
      if (countsRequests(check.limit)) return isWhole ? [{ check, units: check.cost, chargedAtUs }] : []
      // A rule in shadow may set another cost than the decision's.
      const left = Math.max(0, check.cost - already)
      const back = isWhole ? left : Math.min(due, left)
      return back === 0 ? [] : [{ check, units: back, chargedAtUs }]
    }
    const binding = charged.flatMap(backOf)
    const watched = shadow.filter(isCharged).flatMap(backOf)
    const refunds = [...binding, ...watched]
    if (refunds.length === 0) return 0
    if (atMost.length > 0 && !(await this.#isWithin(atMost, binding.length > 0 ? binding : watched, due))) {
      this.#refunded.set(decision, (this.#refunded.get(decision) ?? 0) - due)
      return 0
    }
    return Math.min(due, Math.max(0, ...(await this.#store.refund(refunds))))
  }

  /** Takes back what an attempt charged, which is asked again or not at all: everything, or of a denial the shadow limits. */
  async takeBack(decision: Decision): Promise<void> {
    if (decision.source !== this.#store.source) return
    const check = Decision.checkOf(decision)
    const charged = [...(check.admissions()?.binding ?? []), ...check.shadowAdmissions()].filter(isCharged)
    const refunds = charged.map(({ check, chargedAtUs }) => ({ check, units: check.cost, chargedAtUs }))
    if (refunds.length > 0) await this.#store.refund(refunds)
  }

  /** Forgets what the caller has used; others who paid with it get back what of this request has not come back already. */
  async forgive(decision: Decision): Promise<void> {
    const check = Decision.checkOf(decision)
    const { plan } = check
    if (check.charged < 0 || check.isUnlooked || check.isPeek || decision.source !== this.#store.source)
      return
    const already = this.#refunded.get(decision) ?? 0
    this.#refunded.set(decision, decision.cost)
    const own: Check[] = []
    const refunds: Refund[] = []
    for (const index of plan.limits.keys()) {
      const state = check.checkOf(index)
      const chargedAtUs = check.chargedAt(index)
      const units = countsRequests(state.limit) && already < decision.cost ? state.cost : state.cost - already
      if ((plan.targets[index] ?? 0) === 0) own.push(state)
      else if (chargedAtUs >= 0 && units > 0 && isCharged({ check: state, chargedAtUs }))
        refunds.push({ check: state, units, chargedAtUs })
    }
    await Promise.all([
      own.length > 0 && this.#store.reset(own),
      refunds.length > 0 && this.#store.refund(refunds),
    ])
  }

  /**
   * Whether the bounds have room for a refund, which is charged to them like a request to its limits. Where the store
   * cannot be asked, they have none.
   */
  async #isWithin(atMost: readonly RefundBound[], refunds: readonly Refund[], due: number): Promise<boolean> {
    const checks = atMost.flatMap(bound => boundsOf(bound, refunds, due))
    const question = { alternatives: [checks], shadow: [], onStoreFailure: 'closed' } as const
    const check = checkBy(this.#store, question)
    await check.promise()
    return check.allowed && check.source === this.#store.source
  }

  /** Changes a decision's charge to `actual` units, once: gives the rest back, or charges what is missing. */
  async settle(decision: Decision, actual: Actual): Promise<void> {
    const { binding, shadow } = admissionsOf(decision)
    const actualOf = parseActual(actual)
    if (this.#settled.has(decision)) return
    this.#settled.add(decision)
    const isLocal = decision.source === 'local'
    if (!isLocal && decision.source !== this.#store.source) return
    const already = this.#refunded.get(decision) ?? 0
    this.#refunded.set(decision, decision.cost)
    const refunds = [...binding, ...shadow].flatMap(({ check, chargedAtUs }): Refund[] => {
      const units = actualOf(check.name)
      const back = units === null ? 0 : Math.max(0, check.cost - already) - units
      if (back === 0 || countsRequests(check.limit)) return []
      return [{ check, units: back, chargedAtUs, ...(isLocal && { isLocal }) }]
    })
    if (refunds.length > 0 && !this.#isTooLate()) await this.#store.refund(refunds)
  }
}

/** What a request really took: of all its limits, or by policy. The estimates of policies that are not named stand; a name that no policy has is rejected. */
export type Actual = number | Readonly<Record<string, number>>

/** Throws for the first name that is neither a policy of the decision nor one of the others there are. */
export function rejectUnknownPolicy(decision: Decision, actual: Actual, others: readonly string[]): void {
  if (typeof actual !== 'object' || actual === null || !(decision instanceof Decision)) return
  const own = [
    ...Decision.checkOf(decision).plan.limits.map(({ name }) => settledPolicy(name)),
    ...decision.tokens.map(({ policy }) => policy),
  ]
  const unknown = Object.keys(actual).find(name => !own.includes(name) && !others.includes(name))
  if (unknown !== undefined)
    throw unknownName(`actual.${shownName(unknown)}`, unknown, new Set([...own, ...others]))
}

/** Also of a policy's candidate, and of what several subjects share: `api+candidate.…`, `api/shared.…`. */
function settledPolicy(name: string): string {
  return name.split(/[./+]/, 1)[0] as string
}

/** Returns the units of a limit by its name; null if its estimate stands. */
function parseActual(actual: Actual): (name: string) => number | null {
  if (typeof actual !== 'object' || actual === null) {
    const units = parseCost(actual, 'actual')
    return () => units
  }
  const byPolicy = new Map(
    Object.entries(actual).map(([policy, units]) => [policy, parseCost(units, `actual.${policy}`)]),
  )
  return name => byPolicy.get(settledPolicy(name)) ?? null
}

/** A charged estimate whose actual cost is known later. */
export interface Reservation {
  readonly decision: Decision
  /**
   * Settles the actual cost, once: the rest of the estimate comes back, or what is missing is charged whether it
   * fits or not, also for an estimate of 0 and where the limits are only watched. Unsettled, the estimate stands; so
   * it does after `close()`, with one warning. Does nothing for a denied request.
   */
  settle(actual: Actual): Promise<void>
}

function optionsOf(given: number | RefundOptions | undefined): {
  readonly units?: number
  readonly atMost: readonly RefundBound[]
} {
  if (typeof given !== 'object' || given === null)
    return { ...(given !== undefined && { units: given }), atMost: [] }
  rejectUnknown(given, ['units', 'atMost'])
  const { units, atMost = [] } = given
  return { ...(units !== undefined && { units }), atMost: [atMost].flat().map(parseRefundBound) }
}

/** Returns the limits of a bound, which keep their state beside that of the limits that are given back to. */
function boundsOf(bound: RefundBound, refunds: readonly Refund[], due: number): readonly Check[] {
  const first = refunds[0] as Refund
  // No policy name contains a plus, so this never shares state with one.
  const policy = (name: string) => `${policyOf(name)}+refunds`
  if (bound !== 'limit') {
    const { subject, scope, name } = first.check
    // Two bounds have two states, even if they differ in nothing but the number.
    return [{ subject, scope, name: `${policy(name)}.${bound.limit}-${bound.id}`, limit: bound, cost: due }]
  }
  return refunds.map(({ check, units }) => {
    const ofLimit = check.name.slice(policyOf(check.name).length)
    return { ...check, name: `${policy(check.name)}${ofLimit}`, cost: units }
  })
}

/** Returns the limits that had room for a request; throws for one that was denied or only looked at. */
function admissionsOf(decision: Decision): Admissions {
  if (!(decision instanceof Decision)) {
    throw invalidOption('decision', 'what check returned', decision)
  }
  const isUnasked = decision.source === 'open' || decision.source === 'closed'
  const admissions = isUnasked ? NONE : Decision.checkOf(decision).admissions()
  if (admissions === null) throw notCharged()
  return admissions
}

const NONE: Admissions = { binding: [], shadow: [] }

/** A permit is released, not refunded. */
function isCharged({ check, chargedAtUs }: Admission): boolean {
  return chargedAtUs !== null && check.limit.algorithm.renew === undefined
}

function notCharged(): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_NOT_CHARGED', {
    field: 'decision',
    expected: 'one that charged',
    got: 'one that did not',
  })
}
