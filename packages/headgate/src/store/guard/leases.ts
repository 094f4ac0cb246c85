/**
 * Units of hot keys taken in advance and spent in this process (`algorithms/algorithm.ts` says why that admits no more).
 *
 * A key that is asked for now and then never leases. One that keeps coming back takes a few units, twice as many while
 * they are spent before their time is up, half as many when some are left over, and never more than this process's part
 * of what remains. What is left over goes back. A process that dies takes what it holds with it: it counts as spent.
 *
 * Invariant: every unit admitted here was charged at most one TTL before, and in the counter's own window.
 */

import type { Lease } from '../../algorithms/algorithm.js'
import { type Answer, type Check, isSameState, type Question } from '../../engine/question.js'
import { CheckMap } from '../check-map.js'
import type { Action, Stage } from '../stage.js'
import type { Waiter } from '../waiter.js'
import { createLeaseGrants, type LeaseGrantsOptions } from './lease-grants.js'
import {
  checksOf,
  hasEnough,
  isFor,
  LeaseState,
  leasedAnswer,
  leasedCheckOf,
  leaseOf,
  spend,
} from './lease-state.js'

export type LeaseStageOptions = Omit<LeaseGrantsOptions, 'onHeld'>

/** How many keys are tracked, hot or not. */
const MAX_KEYS = 10_000
/** How many requests within one TTL make a key hot. */
const HOT_AFTER = 4
/** A lease that is idle for this part of its time is given back. */
const IDLE_PARTS = 4
const MOST_SWEEP_MS = 50
const LEAST_SWEEP_MS = 5

export function withLeases(next: Stage, options: LeaseStageOptions): Stage {
  const { clock, timers } = options
  const { wait, giveBack } = createLeaseGrants(next, { ...options, onHeld: sweepLater })
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
    if (action === 'peek') return peek(leaseState, question, nowUs) ?? next.ask(action, question, waiter)
    if (leaseState === undefined || !isFor(leaseState, question)) {
      if (leaseState !== undefined) end(leaseState)
      leaseStates.set(check, new LeaseState(checksOf(question), lease, nowUs))
      return next.ask(action, question, waiter)
    }
    if (hasEnough(leaseState, check.cost, nowUs)) return spend(leaseState, question, nowUs)
    if (!isHot(leaseState, nowUs)) return next.ask(action, question, waiter)
    wait(leaseState, question, waiter)
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
  function peek(leaseState: LeaseState | undefined, question: Question, nowUs: number): Answer | null {
    if (leaseState === undefined || !isFor(leaseState, question)) return null
    if (!hasEnough(leaseState, leasedCheckOf(question).cost, nowUs)) return null
    return leasedAnswer(question, leaseState, nowUs - leaseState.sentAtUs, false)
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
