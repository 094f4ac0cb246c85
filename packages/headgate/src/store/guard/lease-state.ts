import type { Lease } from '../../algorithms/algorithm.js'
import {
  type Answer,
  type Check,
  isSameLimit,
  type Question,
  type Refund,
  type Verdict,
} from '../../engine/question.js'
import { isSingle, LeasedAnswer, onlyCheckOf } from '../../engine/single-question.js'
import type { TimedWaiter } from './deadlines.js'

const NO_VERDICTS: readonly Verdict[] = []

/** A request that waits for a grant, within its deadline. */
export interface Waiting {
  readonly question: Question
  readonly waiter: TimedWaiter<Answer>
}

/** The state of one leased key in this process, and the units it holds. */
export class LeaseState {
  left = 0
  size = 1
  expiresAtUs = 0
  sentAtUs = 0
  usedAtUs = 0
  /** Of the grant, in the order of the checks. */
  verdicts: readonly Verdict[] = NO_VERDICTS
  remaining = Number.POSITIVE_INFINITY
  hits = 1
  hitsSinceUs: number
  /** Requests that wait for the grant in flight, the units they want, and the least that one of them wants. */
  waiting: Waiting[] = []
  wanted = 0
  least = 0
  granting = false
  /** Called when those who waited for a grant have been served. */
  onServed: (() => void) | null = null
  ended = false

  constructor(
    readonly checks: readonly Check[],
    readonly lease: Lease,
    nowUs: number,
  ) {
    this.hitsSinceUs = nowUs
  }
}

/** Returns how the question may be leased; null if it may not be: something in it is not leased, or not uniform. */
export function leaseOf(question: Question): Lease | null {
  const only = onlyCheckOf(question)
  if (only !== null) return only.cost > 0 ? (only.limit.lease ?? null) : null
  const [checks] = question.alternatives
  const first = checks?.[0]
  if (checks === undefined || first === undefined || first.cost === 0) return null
  if (question.alternatives.length > 1 || question.shadow.length > 0) return null
  const alike = (check: Check): boolean =>
    check.limit.lease !== undefined && check.subject === first.subject && check.cost === first.cost
  return checks.every(alike) ? (first.limit.lease ?? null) : null
}

export function checksOf(question: Question): readonly Check[] {
  return question.alternatives[0] as readonly Check[]
}

/** Returns the check whose key and cost stand for all of a leasable question. */
export function leasedCheckOf(question: Question): Check {
  return onlyCheckOf(question) ?? (question.alternatives[0]?.[0] as Check)
}

/** Whether it was taken for the same limits with the same numbers. */
export function isFor(leaseState: LeaseState, question: Question): boolean {
  const { checks } = leaseState
  const only = onlyCheckOf(question)
  if (only !== null) return checks.length === 1 && isSameLimit(checks[0] as Check, only)
  const asked = question.alternatives[0] as readonly Check[]
  return (
    checks.length === asked.length &&
    checks.every((check, index) => isSameLimit(check, asked[index] as Check))
  )
}

/** Returns the amounts to ask for: the preferred one, a quarter of it, and one request's worth. */
export function amountsOf(leaseState: LeaseState, processes: number): number[] {
  const { wanted, least, size, lease, remaining } = leaseState
  // Half of an equal part, so that those who ask a moment later find something too.
  const fair = Number.isFinite(remaining) ? Math.floor(remaining / (2 * Math.max(1, processes))) : size
  const most = Math.max(least, Math.min(Math.max(size, wanted), lease.max, fair))
  return [...new Set([most, Math.max(least, most >> 2), least])]
}

export function timeToSpendUs(leaseState: LeaseState): number {
  const times = leaseState.checks.map(({ limit }, index) => {
    const lease = limit.lease ?? leaseState.lease
    const chargedAtUs = leaseState.verdicts[index]?.chargedAtUs ?? 0
    return limit.algorithm.lease?.lastsUs(limit, lease, chargedAtUs) ?? lease.ttlUs
  })
  return Math.min(...times)
}

/** Returns the refund of unspent units, without what the bucket has refilled by itself: see `algorithms/token-bucket.ts`. */
export function unspent(check: Check, units: number, chargedAtUs: number | null): Refund {
  return { check, units, chargedAtUs, heldSinceUs: chargedAtUs ?? undefined }
}

/** Whether as many units are held here, and may still be spent. */
export function hasEnough(leaseState: LeaseState, cost: number, nowUs: number): boolean {
  return leaseState.left >= cost && nowUs < leaseState.expiresAtUs
}

/** Takes the question's cost from the units held here. There must be enough. */
export function spend(leaseState: LeaseState, question: Question, nowUs: number): Answer {
  const { cost } = leasedCheckOf(question)
  leaseState.left -= cost
  leaseState.usedAtUs = nowUs
  return leasedAnswer(question, leaseState, nowUs - leaseState.sentAtUs, true)
}

/**
 * Returns the answer from units held here: `remaining` is what the store had when it was asked, plus what is held.
 */
export function leasedAnswer(
  question: Question,
  leaseState: LeaseState,
  passedUs: number,
  isSpent: boolean,
): Answer {
  const { verdicts, left } = leaseState
  if (isSingle(question)) {
    const { remaining, resetAfterUs, chargedAtUs } = verdicts[0] as Verdict
    const resetUs = Math.max(0, resetAfterUs - passedUs)
    return new LeasedAnswer(remaining + left, 0, resetUs, isSpent ? chargedAtUs : null, undefined)
  }
  const spent = verdicts.map(verdict => ({
    ...verdict,
    remaining: verdict.remaining + left,
    resetAfterUs: Math.max(0, verdict.resetAfterUs - passedUs),
    chargedAtUs: isSpent ? verdict.chargedAtUs : null,
  }))
  return { charged: 0, verdicts: [spent], shadow: [], leased: true }
}
