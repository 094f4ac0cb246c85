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
import type { Lease } from '../../engine/lease.js'
import type { Answer, Check, Question, Verdict } from '../../engine/question.js'
import { CheckMap } from '../check-map.js'
import type { Store } from '../store.js'
import { type How, putOf, storeWith, type Waiter } from '../waiter.js'
import { timeout } from './deadline.js'
import { Deadlines } from './deadlines.js'
import {
  amountsOf,
  checksOf,
  Holding,
  isFor,
  leasedAnswer,
  leasedCheckOf,
  leaseOf,
  timeToSpendUs,
  unspent,
  type Waiting,
} from './holding.js'
import { isSameState } from './same-limit.js'

export interface LeaseOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** How long a request may take, the wait for a grant included. */
  readonly deadlineMs: number
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
const NO_CHECKS: readonly Check[] = []

export function withLeases(store: Store, options: LeaseOptions): Store {
  const { clock, timers } = options
  const soon = timers.afterThisCode ?? queueMicrotask
  const put = putOf(store)
  const deadlines = new Deadlines({ ...options, error: () => timeout(store.source, options.deadlineMs) })
  const holdings = new CheckMap<Holding>(MAX_KEYS, giveBack)
  let callOffSweep: (() => void) | null = null
  let closed = false
  let closing: Promise<void> | null = null

  function putOrSpend(how: How, question: Question, waiter: Waiter<Answer>): Answer | null {
    const lease = closed ? null : leaseOf(question)
    if (lease === null) return put(how, question, waiter)
    const check = leasedCheckOf(question)
    const nowUs = clock.nowUs()
    const holding = holdings.get(check)
    if (how === 'peek') return look(holding, question, nowUs) ?? put(how, question, waiter)
    if (holding === undefined || !isFor(holding, question)) {
      if (holding !== undefined) end(holding)
      holdings.set(check, new Holding(checksOf(question), lease, nowUs))
      return put(how, question, waiter)
    }
    if (hasEnough(holding, check.cost, nowUs)) return spend(holding, question, nowUs)
    if (!isHot(holding, nowUs)) return put(how, question, waiter)
    waitForGrant(holding, question, waiter)
    return null
  }

  function isHot(holding: Holding, nowUs: number): boolean {
    if (nowUs - holding.hitsSinceUs > holding.lease.ttlUs) {
      holding.hitsSinceUs = nowUs
      holding.hits = 0
    }
    return ++holding.hits > HOT_AFTER || holding.granting
  }

  /** What the next request of this process would be told, if it would be served from what is held. */
  function look(holding: Holding | undefined, question: Question, nowUs: number): Answer | null {
    if (holding === undefined || !isFor(holding, question)) return null
    if (!hasEnough(holding, leasedCheckOf(question).cost, nowUs)) return null
    return leasedAnswer(question, holding, nowUs - holding.sentAtUs, false)
  }

  function hasEnough(holding: Holding, cost: number, nowUs: number): boolean {
    return holding.left >= cost && nowUs < holding.expiresAtUs
  }

  function spend(holding: Holding, question: Question, nowUs: number): Answer {
    const { cost } = leasedCheckOf(question)
    holding.left -= cost
    holding.usedAtUs = nowUs
    return leasedAnswer(question, holding, nowUs - holding.sentAtUs, true)
  }

  function waitForGrant(holding: Holding, question: Question, waiter: Waiter<Answer>): void {
    const { cost } = leasedCheckOf(question)
    // Whatever comes after the grant counts towards the same deadline.
    holding.waiting.push({ question, call: deadlines.begin(waiter) })
    holding.wanted += cost
    holding.least = holding.least === 0 ? cost : Math.min(holding.least, cost)
    if (holding.granting) return
    holding.granting = true
    soon(() => take(holding))
  }

  /** Asks for what is wanted and then some; for less, and at last for one request, where there is not as much. */
  function take(holding: Holding): void {
    const grant = new Grant(holding, clock.nowUs())
    try {
      outgrow(holding)
      grant.amounts = amountsOf(holding, options.liveProcesses())
      const alternatives = grant.amounts.map(cost => holding.checks.map(check => ({ ...check, cost })))
      const answer = put('decide', { alternatives, shadow: NO_CHECKS }, grant)
      if (answer !== null) grant.answered(answer)
    } catch (error) {
      grant.failed(error)
    }
  }

  class Grant implements Waiter<Answer> {
    readonly wanted: number
    readonly least: number
    /** Who asked before it was sent: of those who come later it may have been decided before they asked. */
    readonly early: number
    /** What is asked for, the most first. */
    amounts: readonly number[] = []

    constructor(
      readonly holding: Holding,
      readonly sentAtUs: number,
    ) {
      this.wanted = holding.wanted
      this.least = holding.least
      this.early = holding.waiting.length
    }

    answered(answer: Answer): void {
      if (answer.charged >= 0) {
        this.granted(answer)
        this.serve(null)
      } else {
        this.holding.remaining = 0
        this.holding.size = 1
        this.serve(answer.verdicts.at(-1) ?? null)
      }
      this.holding.onServed?.()
    }

    failed(error: unknown): void {
      for (const { call } of this.over()) call.failed(error)
      this.holding.onServed?.()
    }

    granted(answer: Answer): void {
      const { holding, sentAtUs } = this
      const verdicts = answer.verdicts[answer.charged] as readonly Verdict[]
      const units = this.amounts[answer.charged] as number
      if (answer.charged > 0) holding.size = Math.max(1, units)
      holding.remaining = Math.min(...verdicts.map(({ remaining }) => remaining))
      holding.verdicts = verdicts
      holding.sentAtUs = sentAtUs
      holding.usedAtUs = clock.nowUs()
      holding.expiresAtUs = sentAtUs + timeToSpendUs(holding)
      // What was reset meanwhile has been forgotten: nothing of it is left beyond those who were waiting for it.
      holding.left = holding.ended ? Math.min(units, this.wanted) : units
      if (!holding.ended) sweepLater(holding.lease)
    }

    /** Those who asked for as much as was denied are denied together; who finds nothing left asks for itself. */
    serve(denied: readonly Verdict[] | null): void {
      const { holding } = this
      const nowUs = clock.nowUs()
      for (const [index, { question, call }] of this.over().entries()) {
        if (call.isSettled) continue
        const { cost } = leasedCheckOf(question)
        if (hasEnough(holding, cost, nowUs)) call.answered(spend(holding, question, nowUs))
        else if (denied !== null && cost === this.least && index < this.early) {
          call.answered({ charged: -1, verdicts: [denied], shadow: [] })
        } else {
          const answer = put('decide', question, call)
          if (answer !== null) call.answered(answer)
        }
      }
    }

    /** Who waited for it. From now on a request waits for another one. */
    over(): readonly Waiting[] {
      const { holding } = this
      const { waiting } = holding
      holding.waiting = []
      holding.wanted = 0
      holding.least = 0
      holding.granting = false
      return waiting
    }
  }

  /** Leaves an old lease: twice as much next time if it was all spent in time, half as much if not. */
  function outgrow(holding: Holding): void {
    if (holding.left > 0) {
      holding.size = Math.max(1, holding.size >> 1)
      giveBack(holding)
    } else if (holding.sentAtUs > 0) {
      const inTime = clock.nowUs() < holding.expiresAtUs
      holding.size = Math.max(1, inTime ? Math.min(holding.lease.max, holding.size * 2) : holding.size >> 1)
    }
  }

  function giveBack(holding: Holding): Promise<unknown> | undefined {
    const { left: units, checks, verdicts } = holding
    holding.left = 0
    if (units === 0) return undefined
    const refunds = checks.map((check, index) => unspent(check, units, verdicts[index]?.chargedAtUs ?? null))
    // Whether it arrived is not known when it fails, and it is not tried again: then it counts as spent.
    return Promise.resolve(store.refund(refunds)).catch(() => {})
  }

  /** Gives back what is held, and what a grant that is under way will bring beyond those who wait for it. */
  async function leave(holding: Holding): Promise<void> {
    if (holding.granting) {
      await new Promise<void>(resolve => {
        holding.onServed = resolve
      })
    }
    await giveBack(holding)
  }

  async function closeAll(): Promise<void> {
    closed = true
    callOffSweep?.()
    await Promise.all([...holdings.values()].map(leave))
    await store.close()
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
      else if (!holding.granting) {
        holding.size = Math.max(1, holding.size >> 1)
        void giveBack(holding)
      }
    }
    if (held !== null) sweepLater(held)
  }

  return storeWith(putOrSpend, {
    ...store,
    reset(checks: readonly Check[]) {
      for (const holding of holdings.values()) {
        if (!holding.checks.some(held => checks.some(check => isSameState(held, check)))) continue
        // Forgotten with everything else: it must neither be spent nor given back.
        holding.left = 0
        end(holding)
      }
      return store.reset(checks)
    },
    close() {
      closing ??= closeAll()
      return closing
    },
  })
}
