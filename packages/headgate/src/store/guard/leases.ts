/**
 * Units of hot keys taken in advance and spent in this process (`engine/lease.ts` says why that admits no more).
 *
 * A key that is asked for now and then never leases. One that keeps coming back takes a few units, twice as many while
 * they are spent before their time is up, half as many when some are left over, and never more than this process's part
 * of what remains. What is left over goes back. A process that dies takes what it holds with it: it counts as spent.
 *
 * Invariant: every unit admitted here was charged at most one TTL before, and in the counter's own window.
 */
import type { Clock, Timers } from '../../clock.js'
import { type Lease, leaseForUs } from '../../engine/lease.js'
import { hasSameNumbers } from '../../engine/limit.js'
import type { Answer, Check, Question, Verdict } from '../../engine/question.js'
import { LeasedAnswer, SingleQuestion } from '../../engine/single.js'
import { CheckMap } from '../check-map.js'
import type { Eventually, Store } from '../store.js'

export interface LeaseOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** How many processes share what remains. */
  liveProcesses(): number
}

/** Keys remembered at once, hot or not. */
const MAX_KEYS = 10_000
/** Requests within one TTL from which on a key is hot. */
const HOT_AFTER = 4
/** A lease that is idle for this part of its time goes back. */
const IDLE_PARTS = 4
const MOST_SWEEP_MS = 50
const LEAST_SWEEP_MS = 5
const NO_VERDICTS: readonly Verdict[] = []
const NO_CHECKS: readonly Check[] = []

/** What a request of `least` units was told when nothing could be granted. */
interface Denial {
  readonly verdicts: readonly Verdict[]
  readonly least: number
}

/** What a process knows of one key, and the units it holds of it. */
class Holding {
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
  /** Units that requests wait for, and the least of them, while a grant is under way. */
  wanted = 0
  least = 0
  grant: Promise<Denial | null> | null = null
  ended = false

  constructor(
    readonly checks: readonly Check[],
    readonly lease: Lease,
    nowUs: number,
  ) {
    this.hitsSinceUs = nowUs
  }
}

export function withLeases(store: Store, options: LeaseOptions): Store {
  const { clock, timers } = options
  const soon = timers.afterThisCode ?? queueMicrotask
  const holdings = new CheckMap<Holding>(MAX_KEYS, giveBack)
  let callOffSweep: (() => void) | null = null
  let closed = false

  function decide(question: Question): Eventually<Answer> {
    const lease = leaseOf(question)
    if (lease === null || closed) return store.decide(question)
    const check = firstCheckOf(question)
    const nowUs = clock.nowUs()
    const holding = holdings.get(check)
    if (holding === undefined || !isFor(holding, question)) {
      if (holding !== undefined) end(holding)
      holdings.set(check, new Holding(checksOf(question), lease, nowUs))
      return store.decide(question)
    }
    if (holding.left >= check.cost && nowUs < holding.expiresAtUs) return spend(holding, question, nowUs)
    if (!isHot(holding, nowUs)) return store.decide(question)
    return fromGrant(holding, question)
  }

  function isHot(holding: Holding, nowUs: number): boolean {
    if (nowUs - holding.hitsSinceUs > holding.lease.ttlUs) {
      holding.hitsSinceUs = nowUs
      holding.hits = 0
    }
    return ++holding.hits > HOT_AFTER || holding.grant !== null
  }

  function spend(holding: Holding, question: Question, nowUs: number): Answer {
    const { cost } = firstCheckOf(question)
    holding.left -= cost
    holding.usedAtUs = nowUs
    return leasedAnswer(question, holding, nowUs - holding.sentAtUs)
  }

  async function fromGrant(holding: Holding, question: Question): Promise<Answer> {
    const { cost } = firstCheckOf(question)
    holding.wanted += cost
    holding.least = holding.least === 0 ? cost : Math.min(holding.least, cost)
    holding.grant ??= new Promise(resolve => soon(() => resolve(take(holding))))
    const denial = await holding.grant
    const nowUs = clock.nowUs()
    if (holding.left >= cost && nowUs < holding.expiresAtUs) return spend(holding, question, nowUs)
    // Denied with everybody else who asked for as much at the same moment.
    if (denial?.least === cost) return { charged: -1, verdicts: [denial.verdicts], shadow: [] }
    return store.decide(question)
  }

  /** Asks for what is wanted and then some; for less, and at last for one request, where there is not as much. */
  async function take(holding: Holding): Promise<Denial | null> {
    const { wanted, least } = holding
    try {
      outgrow(holding)
      const amounts = amountsOf(holding, options.liveProcesses())
      const sentAtUs = clock.nowUs()
      const alternatives = amounts.map(cost => holding.checks.map(check => ({ ...check, cost })))
      const answer = await store.decide({ alternatives, shadow: NO_CHECKS })
      if (answer.charged < 0) {
        holding.remaining = 0
        holding.size = 1
        return { verdicts: answer.verdicts.at(-1) ?? NO_VERDICTS, least }
      }
      const verdicts = answer.verdicts[answer.charged] ?? NO_VERDICTS
      const granted = amounts[answer.charged] as number
      if (answer.charged > 0) holding.size = Math.max(1, granted)
      holding.remaining = Math.min(...verdicts.map(({ remaining }) => remaining))
      holding.verdicts = verdicts
      holding.sentAtUs = sentAtUs
      holding.usedAtUs = clock.nowUs()
      holding.expiresAtUs = sentAtUs + timeToSpendUs(holding)
      // What was reset meanwhile has been forgotten: nothing of it is left beyond those who were waiting for it.
      holding.left = holding.ended ? Math.min(granted, wanted) : granted
      if (!holding.ended) sweepLater(holding.lease)
      return null
    } finally {
      holding.grant = null
      holding.wanted = 0
      holding.least = 0
    }
  }

  /** Leaves an old lease: twice as much next time if it was all spent in time, half as much if not. */
  function outgrow(holding: Holding): void {
    if (holding.left > 0) {
      holding.size = Math.max(1, holding.size >> 1)
      giveBack(holding)
    } else if (holding.sentAtUs > 0) {
      const inTime = clock.nowUs() < holding.expiresAtUs
      holding.size = Math.max(1, inTime ? holding.size * 2 : holding.size >> 1)
    }
  }

  function giveBack(holding: Holding): Promise<unknown> | undefined {
    const { left: units, checks, verdicts } = holding
    holding.left = 0
    if (units === 0) return undefined
    const refunds = checks.map((check, index) => ({
      check,
      units,
      chargedAtUs: verdicts[index]?.chargedAtUs ?? null,
    }))
    // Whether it arrived is not known when it fails, and it is not tried again: then it counts as spent.
    return Promise.resolve(store.refund(refunds)).catch(() => {})
  }

  function end(holding: Holding): void {
    holding.ended = true
    void giveBack(holding)
    holdings.delete(holding.checks[0] as Check)
  }

  function sweepLater({ ttlUs }: Lease): void {
    const idleMs = Math.round(ttlUs / 1000 / IDLE_PARTS)
    callOffSweep ??= timers.inBackground(Math.max(LEAST_SWEEP_MS, Math.min(MOST_SWEEP_MS, idleMs)), sweep)
  }

  /** Gives back what nobody has asked for in a while, or may no longer be spent. */
  function sweep(): void {
    callOffSweep = null
    const nowUs = clock.nowUs()
    let held: Lease | null = null
    for (const holding of holdings.values()) {
      if (holding.left === 0) continue
      const { lease } = holding
      const idle = nowUs - holding.usedAtUs >= lease.ttlUs / IDLE_PARTS
      if (nowUs < holding.expiresAtUs && !idle)
        held = held === null || lease.ttlUs < held.ttlUs ? lease : held
      else if (holding.grant === null) {
        holding.size = Math.max(1, holding.size >> 1)
        void giveBack(holding)
      }
    }
    if (held !== null) sweepLater(held)
  }

  return {
    ...store,
    decide,
    reset(checks) {
      for (const holding of holdings.values()) {
        if (!holding.checks.some(held => checks.some(check => isSameState(held, check)))) continue
        // Forgotten with everything else: it must neither be spent nor given back.
        holding.left = 0
        end(holding)
      }
      return store.reset(checks)
    },
    async close() {
      closed = true
      callOffSweep?.()
      await Promise.all([...holdings.values()].map(giveBack))
      await store.close()
    },
  }
}

/** How the question may be leased; null when it may not: something in it is not leased, or is not all alike. */
function leaseOf(question: Question): Lease | null {
  if (question instanceof SingleQuestion) return question.cost > 0 ? (question.limit.lease ?? null) : null
  const [checks] = question.alternatives
  const first = checks?.[0]
  if (checks === undefined || first === undefined || first.cost === 0) return null
  if (question.alternatives.length > 1 || question.shadow.length > 0) return null
  const alike = (check: Check): boolean =>
    check.limit.lease !== undefined && check.subject === first.subject && check.cost === first.cost
  return checks.every(alike) ? (first.limit.lease ?? null) : null
}

function checksOf(question: Question): readonly Check[] {
  if (!(question instanceof SingleQuestion)) return question.alternatives[0] as readonly Check[]
  const { subject, scope, name, limit, cost } = question
  return [{ subject, scope, name, limit, cost }]
}

function firstCheckOf(question: Question): Check {
  return question instanceof SingleQuestion ? question : (question.alternatives[0]?.[0] as Check)
}

/** Whether it was taken for the same limits with the same numbers. */
function isFor(holding: Holding, question: Question): boolean {
  const { checks } = holding
  if (question instanceof SingleQuestion) {
    return checks.length === 1 && isSameLimit(checks[0] as Check, question)
  }
  const asked = question.alternatives[0] as readonly Check[]
  return (
    checks.length === asked.length &&
    checks.every((check, index) => isSameLimit(check, asked[index] as Check))
  )
}

function isSameLimit(held: Check, asked: Check): boolean {
  return isSameState(held, asked) && (held.limit === asked.limit || hasSameNumbers(held.limit, asked.limit))
}

function isSameState(one: Check, other: Check): boolean {
  return one.subject === other.subject && one.name === other.name && one.scope === other.scope
}

/** What to ask for: as much as suits, a quarter of it, and one request's worth. */
function amountsOf(holding: Holding, processes: number): number[] {
  const { wanted, least, size, lease, remaining } = holding
  // Half of an equal part: those who ask a moment later find something, too.
  const fair = Number.isFinite(remaining) ? Math.floor(remaining / (2 * Math.max(1, processes))) : size
  const most = Math.max(least, Math.min(Math.max(size, wanted), lease.max, fair))
  return [...new Set([most, Math.max(least, most >> 2), least])]
}

function timeToSpendUs(holding: Holding): number {
  const times = holding.checks.map(({ limit }, index) =>
    leaseForUs(limit, limit.lease ?? holding.lease, holding.verdicts[index]?.chargedAtUs ?? 0),
  )
  return Math.min(...times)
}

/** What is left is what the store had when it was asked, and what is held here. */
function leasedAnswer(question: Question, holding: Holding, passedUs: number): Answer {
  const { verdicts, left } = holding
  if (question instanceof SingleQuestion) {
    const { remaining, resetAfterUs, chargedAtUs } = verdicts[0] as Verdict
    return new LeasedAnswer(remaining + left, 0, Math.max(0, resetAfterUs - passedUs), chargedAtUs, undefined)
  }
  const spent = verdicts.map(verdict => ({
    ...verdict,
    remaining: verdict.remaining + left,
    resetAfterUs: Math.max(0, verdict.resetAfterUs - passedUs),
  }))
  return { charged: 0, verdicts: [spent], shadow: [], leased: true }
}
