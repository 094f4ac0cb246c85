/**
 * Units on their way between the store and this process: those who find too few here wait for one grant together, and
 * what nobody spends is given back. `leases.ts` says when either is due.
 */

import type { Lease } from '../../algorithms/algorithm.js'
import type { Answer, Check, Question, Verdict } from '../../engine/question.js'
import type { Clock, Timers } from '../../time/clock.js'
import type { Stage } from '../stage.js'
import type { Waiter } from '../waiter.js'
import type { Deadlines } from './deadlines.js'
import {
  amountsOf,
  hasEnough,
  type LeaseState,
  leasedCheckOf,
  spend,
  timeToSpendUs,
  unspent,
  type Waiting,
} from './lease-state.js'

export interface LeaseGrantsOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** How long a request may take, including the wait for a grant. */
  readonly deadlines: Deadlines
  /** Returns how many processes share what remains. */
  liveProcesses(): number
  /** Called for every grant with the limit's name and the units taken. */
  onGrant?(limit: string, units: number): void
  /** Called when units of a lease are held here that may have to be given back. */
  onHeld(lease: Lease): void
}

export interface LeaseGrants {
  /** Answers the question from the next grant, or as the store does if that brings too little. */
  wait(leaseState: LeaseState, question: Question, waiter: Waiter<Answer>): void
  /** Gives back the units that are held, if there are any. Never rejects. */
  giveBack(leaseState: LeaseState): Promise<unknown> | undefined
}

const NO_CHECKS: readonly Check[] = []

/** Takes units from the next stage, and gives them back to it. */
export function createLeaseGrants(next: Stage, options: LeaseGrantsOptions): LeaseGrants {
  const { clock, timers, deadlines } = options
  const soon = timers.afterThisCode ?? queueMicrotask

  function wait(leaseState: LeaseState, question: Question, waiter: Waiter<Answer>): void {
    const { cost } = leasedCheckOf(question)
    // Everything after the grant counts towards the same deadline.
    leaseState.waiting.push({ question, waiter: deadlines.begin(waiter) })
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
      for (const { waiter } of this.over()) waiter.failed(error)
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
      // A key that was reset in the meantime has been forgotten: only those who waited for the grant get some of it.
      leaseState.left = leaseState.ended ? Math.min(units, this.wanted) : units
      if (!leaseState.ended) options.onHeld(leaseState.lease)
    }

    /**
     * Those who asked for as much as was denied are denied together; those who find nothing left ask for
     * themselves.
     */
    serve(denied: readonly Verdict[] | null): void {
      const { leaseState } = this
      const nowUs = clock.nowUs()
      for (const [index, { question, waiter }] of this.over().entries()) {
        if (waiter.isSettled) continue
        const { cost } = leasedCheckOf(question)
        if (hasEnough(leaseState, cost, nowUs)) waiter.answered(spend(leaseState, question, nowUs))
        else if (denied !== null && cost === this.least && index < this.early) {
          waiter.answered({ charged: -1, verdicts: [denied], shadow: [] })
        } else {
          const answer = next.ask('decide', question, waiter)
          if (answer !== null) waiter.answered(answer)
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

  return { wait, giveBack }
}
