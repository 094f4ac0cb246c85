/**
 * Units of hot keys taken in advance and spent in this process (`engine/lease.ts` says why that admits no more).
 *
 * A key that is asked for now and then never leases. One that keeps coming back takes a few units, twice as many while
 * they are spent before their time is up, half as many when some are left over, and never more than this process's part
 * of what remains. What is left over goes back. A process that dies takes what it holds with it: it counts as spent.
 *
 * Invariant: every unit admitted here was charged at most one TTL before, and in the counter's own window.
 */

import type { Lease } from '../../engine/lease.js'
import { type Answer, type Check, isSameState, type Question, type Verdict } from '../../engine/question.js'
import type { Clock, Timers } from '../../time/clock.js'
import { CheckMap } from '../check-map.js'
import type { Action, Stage } from '../stage.js'
import type { Waiter } from '../waiter.js'
import type { Deadlines } from './deadlines.js'
import {
  amountsOf,
  checksOf,
  isFor,
  LeaseState,
  leasedAnswer,
  leasedCheckOf,
  leaseOf,
  timeToSpendUs,
  unspent,
  type Waiting,
} from './lease-state.js'

export interface LeaseStageOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** How long a request may take, including the wait for a grant. */
  readonly deadlines: Deadlines
  /** Returns how many processes share what remains. */
  liveProcesses(): number
  /** Called for every grant with the limit's name and the units taken. */
  onGrant?(limit: string, units: number): void
}

/** How many keys are tracked, hot or not. */
const MAX_KEYS = 10_000
/** How many requests within one TTL make a key hot. */
const HOT_AFTER = 4
/** A lease that is idle for this part of its time is given back. */
const IDLE_PARTS = 4
const MOST_SWEEP_MS = 50
const LEAST_SWEEP_MS = 5
const NO_CHECKS: readonly Check[] = []

export function withLeases(next: Stage, options: LeaseStageOptions): Stage {
  const { clock, timers, deadlines } = options
  const soon = timers.afterThisCode ?? queueMicrotask
  const leaseStates = new CheckMap<LeaseState>(MAX_KEYS, dropped => void leave(dropped))
  let callOffSweep: (() => void) | null = null
  let closed = false
  let closing: Promise<void> | null = null

  function askOrSpend(action: Action, question: Question, waiter: Waiter<Answer>): Answer | null {
    const lease = closed ? null : leaseOf(question)
    if (lease === null) return next.ask(action, question, waiter)
    const check = leasedCheckOf(question)
    const nowUs = clock.nowUs()
    const leaseState = leaseStates.get(check)
    if (action === 'peek') return look(leaseState, question, nowUs) ?? next.ask(action, question, waiter)
    if (leaseState === undefined || !isFor(leaseState, question)) {
      if (leaseState !== undefined) end(leaseState)
      leaseStates.set(check, new LeaseState(checksOf(question), lease, nowUs))
      return next.ask(action, question, waiter)
    }
    if (hasEnough(leaseState, check.cost, nowUs)) return spend(leaseState, question, nowUs)
    if (!isHot(leaseState, nowUs)) return next.ask(action, question, waiter)
    waitForGrant(leaseState, question, waiter)
    return null
  }

  function isHot(leaseState: LeaseState, nowUs: number): boolean {
    if (nowUs - leaseState.hitsSinceUs > leaseState.lease.ttlUs) {
      leaseState.hitsSinceUs = nowUs
      leaseState.hits = 0
    }
    return ++leaseState.hits > HOT_AFTER || leaseState.granting
  }

  /** Returns the answer that the next request would get from the units held here; null if it would not. */
  function look(leaseState: LeaseState | undefined, question: Question, nowUs: number): Answer | null {
    if (leaseState === undefined || !isFor(leaseState, question)) return null
    if (!hasEnough(leaseState, leasedCheckOf(question).cost, nowUs)) return null
    return leasedAnswer(question, leaseState, nowUs - leaseState.sentAtUs, false)
  }

  function hasEnough(leaseState: LeaseState, cost: number, nowUs: number): boolean {
    return leaseState.left >= cost && nowUs < leaseState.expiresAtUs
  }

  function spend(leaseState: LeaseState, question: Question, nowUs: number): Answer {
    const { cost } = leasedCheckOf(question)
    leaseState.left -= cost
    leaseState.usedAtUs = nowUs
    return leasedAnswer(question, leaseState, nowUs - leaseState.sentAtUs, true)
  }

  function waitForGrant(leaseState: LeaseState, question: Question, waiter: Waiter<Answer>): void {
    const { cost } = leasedCheckOf(question)
    // Everything after the grant counts towards the same deadline.
    leaseState.waiting.push({ question, call: deadlines.begin(waiter) })
    leaseState.wanted += cost
    leaseState.least = leaseState.least === 0 ? cost : Math.min(leaseState.least, cost)
    if (leaseState.granting) return
    leaseState.granting = true
    soon(() => take(leaseState))
  }

  /** Asks for what is wanted and some more; for less, and finally for one request, if there is not as much. */
  function take(leaseState: LeaseState): void {
    const grant = new Grant(leaseState, clock.nowUs())
    try {
      outgrow(leaseState)
      grant.amounts = amountsOf(leaseState, options.liveProcesses())
      const alternatives = grant.amounts.map(cost => leaseState.checks.map(check => ({ ...check, cost })))
      const answer = next.ask('decide', { alternatives, shadow: NO_CHECKS }, grant)
      if (answer !== null) grant.answered(answer)
    } catch (error) {
      grant.failed(error)
    }
  }

  class Grant implements Waiter<Answer> {
    readonly wanted: number
    readonly least: number
    /** Those who asked before it was sent; for later ones it may have been decided before they asked. */
    readonly early: number
    /** The amounts to ask for, the largest first. */
    amounts: readonly number[] = []

    constructor(
      readonly leaseState: LeaseState,
      readonly sentAtUs: number,
    ) {
      this.wanted = leaseState.wanted
      this.least = leaseState.least
      this.early = leaseState.waiting.length
    }

    answered(answer: Answer): void {
      if (answer.charged >= 0) {
        this.granted(answer)
        this.serve(null)
      } else {
        this.leaseState.remaining = 0
        this.leaseState.size = 1
        this.serve(answer.verdicts.at(-1) ?? null)
      }
      this.leaseState.onServed?.()
    }

    failed(error: unknown): void {
      for (const { call } of this.over()) call.failed(error)
      this.leaseState.onServed?.()
    }

    granted(answer: Answer): void {
      const { leaseState, sentAtUs } = this
      const verdicts = answer.verdicts[answer.charged] as readonly Verdict[]
      const units = this.amounts[answer.charged] as number
      if (answer.charged > 0) leaseState.size = Math.max(1, units)
      leaseState.remaining = Math.min(...verdicts.map(({ remaining }) => remaining))
      leaseState.verdicts = verdicts
      options.onGrant?.((leaseState.checks[0] as Check).name, units)
      leaseState.sentAtUs = sentAtUs
      leaseState.usedAtUs = clock.nowUs()
      leaseState.expiresAtUs = sentAtUs + timeToSpendUs(leaseState)
      // A key that was reset in the meantime has been forgotten: only those who waited for the grant get some of
      // it.
      leaseState.left = leaseState.ended ? Math.min(units, this.wanted) : units
      if (!leaseState.ended) sweepLater(leaseState.lease)
    }

    /**
     * Those who asked for as much as was denied are denied together; those who find nothing left ask for
     * themselves.
     */
    serve(denied: readonly Verdict[] | null): void {
      const { leaseState } = this
      const nowUs = clock.nowUs()
      for (const [index, { question, call }] of this.over().entries()) {
        if (call.isSettled) continue
        const { cost } = leasedCheckOf(question)
        if (hasEnough(leaseState, cost, nowUs)) call.answered(spend(leaseState, question, nowUs))
        else if (denied !== null && cost === this.least && index < this.early) {
          call.answered({ charged: -1, verdicts: [denied], shadow: [] })
        } else {
          const answer = next.ask('decide', question, call)
          if (answer !== null) call.answered(answer)
        }
      }
    }

    /** Returns those who waited for it. From now on requests wait for another one. */
    over(): readonly Waiting[] {
      const { leaseState } = this
      const { waiting } = leaseState
      leaseState.waiting = []
      leaseState.wanted = 0
      leaseState.least = 0
      leaseState.granting = false
      return waiting
    }
  }

  /** Ends an old lease: the next one is twice as large if it was all spent in time, half as large if not. */
  function outgrow(leaseState: LeaseState): void {
    if (leaseState.left > 0) {
      leaseState.size = Math.max(1, leaseState.size >> 1)
      giveBack(leaseState)
    } else if (leaseState.sentAtUs > 0) {
      const inTime = clock.nowUs() < leaseState.expiresAtUs
      leaseState.size = Math.max(
        1,
        inTime ? Math.min(leaseState.lease.max, leaseState.size * 2) : leaseState.size >> 1,
      )
    }
  }

  function giveBack(leaseState: LeaseState): Promise<unknown> | undefined {
    const { left: units, checks, verdicts } = leaseState
    leaseState.left = 0
    if (units === 0) return undefined
    const refunds = checks.map((check, index) => unspent(check, units, verdicts[index]?.chargedAtUs ?? null))
    // If it fails, it is unknown whether it arrived; it is not repeated and counts as spent.
    return Promise.resolve(next.refund(refunds)).catch(() => {})
  }

  /** Gives back what is held, and what a grant in flight will bring beyond those who wait for it. */
  async function leave(leaseState: LeaseState): Promise<void> {
    if (leaseState.granting) {
      await new Promise<void>(resolve => {
        leaseState.onServed = resolve
      })
    }
    await giveBack(leaseState)
  }

  async function closeAll(): Promise<void> {
    closed = true
    callOffSweep?.()
    await Promise.all([...leaseStates.values()].map(leave))
    await next.close()
  }

  function end(leaseState: LeaseState): void {
    leaseState.ended = true
    void giveBack(leaseState)
    leaseStates.delete(leaseState.checks[0] as Check)
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
    for (const leaseState of leaseStates.values()) {
      if (leaseState.left === 0) continue
      const { lease } = leaseState
      const idle = nowUs - leaseState.usedAtUs >= lease.ttlUs / IDLE_PARTS
      if (nowUs < leaseState.expiresAtUs && !idle)
        held = held === null || lease.ttlUs < held.ttlUs ? lease : held
      else if (!leaseState.granting) {
        leaseState.size = Math.max(1, leaseState.size >> 1)
        void giveBack(leaseState)
      }
    }
    if (held !== null) sweepLater(held)
  }

  return {
    source: next.source,
    ask: askOrSpend,
    refund: next.refund,
    renew: next.renew,
    reset(checks) {
      for (const leaseState of leaseStates.values()) {
        if (!leaseState.checks.some(held => checks.some(check => isSameState(held, check)))) continue
        // Forgotten with everything else: it must neither be spent nor given back.
        leaseState.left = 0
        end(leaseState)
      }
      return next.reset(checks)
    },
    close() {
      closing ??= closeAll()
      return closing
    },
  }
}
