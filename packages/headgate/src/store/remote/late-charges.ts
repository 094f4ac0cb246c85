/**
 * What this process admitted of accounts, such as quotas, while the store was not asked: charged to it afterwards, because an
 * invoice counts it.
 *
 * Only what was certainly not sent is noted: a check that got no answer may have been charged, and nothing is charged twice.
 * So a charge that got no answer is not repeated either, but dropped; and so is what belongs to a period that has ended, which
 * must not be taken from the next one. Units that are dropped are counted.
 */
import { NOT_CHARGED } from '../../algorithms/algorithm.js'
import { type Check, type Refund, stateOf } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import type { NamedLimit } from '../../check/plan.js'
import type { Clock, Timers } from '../../time/clock.js'

/** States of which units are owed; those of further ones are dropped. */
const MAX_OWED = 10_000
const MOST_IN_A_CALL = 100
const TRY_EVERY_MS = 500

interface Owed {
  readonly check: Check
  units: number
  /** When their period ends. */
  readonly untilUs: number
}

export interface LateChargesOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** States of one group are charged in one call. */
  groupOf(check: Check): string
  /** Whether the store must not be asked about it yet. */
  isAway(check: Check): boolean
  charge(refunds: readonly Refund[]): Promise<unknown>
  /** Whether a charge that failed was not even sent. */
  wasNotSent(error: unknown): boolean
  onCharged(limit: string, units: number, isDropped: boolean): void
}

export class LateCharges {
  private readonly owed = new Map<string, Owed>()
  private cancelTry: (() => void) | null = null
  private charging: Promise<void> | null = null
  private isClosed = false

  constructor(
    private readonly options: LateChargesOptions,
    private readonly max = MAX_OWED,
  ) {}

  /** Notes what a check that was decided here has charged. */
  note(check: PendingCheck): void {
    if (check.isPeek) return
    const { plan, charged } = check
    if (charged >= 0) this.noteFrom(check, plan.start(charged), plan.ends[charged] as number)
    this.noteFrom(check, plan.shadowFrom, plan.limits.length)
  }

  private noteFrom(check: PendingCheck, from: number, end: number): void {
    for (let index = from; index < end; index++) {
      const { limit } = check.plan.limits[index] as NamedLimit
      if (limit.algorithm.account === undefined || check.chargedAt(index) === NOT_CHARGED) continue
      const state = check.checkOf(index)
      const untilUs = this.options.clock.nowUs() + check.resetAfter(index)
      this.add({ check: state, units: state.cost, untilUs })
    }
  }

  /** What was charged here has turned out to be less, or more. */
  settled(refunds: readonly Refund[]): void {
    for (const { check, units } of refunds) {
      const owed = this.owed.get(stateOf(check))
      if (owed !== undefined) owed.units = Math.max(0, owed.units - units)
    }
  }

  /** Tries for the last time. */
  async close(): Promise<void> {
    this.isClosed = true
    this.cancelTry?.()
    await this.charging
    await this.chargeAll()
    for (const owed of this.owed.values()) this.drop(owed)
    this.owed.clear()
  }

  private add(owed: Owed): void {
    const key = stateOf(owed.check)
    const before = this.owed.get(key)
    if (before !== undefined && before.untilUs > this.options.clock.nowUs()) before.units += owed.units
    else if (before === undefined && this.owed.size >= this.max) this.drop(owed)
    else {
      if (before !== undefined) this.drop(before)
      this.owed.set(key, owed)
    }
    this.tryLater()
  }

  private tryLater(): void {
    if (this.cancelTry !== null || this.isClosed || this.owed.size === 0) return
    this.cancelTry = this.options.timers.inBackground(TRY_EVERY_MS, () => {
      this.charging = this.chargeAll().then(() => {
        this.cancelTry = null
        this.charging = null
        this.tryLater()
      })
    })
  }

  /** Charges what can be charged now, one call after the other: a store that is just back has enough to do. */
  private async chargeAll(): Promise<void> {
    for (const calls of this.takeDue().values()) {
      for (let from = 0; from < calls.length; from += MOST_IN_A_CALL) {
        await this.charge(calls.slice(from, from + MOST_IN_A_CALL))
      }
    }
  }

  /** Takes out what is owed to nodes that can be asked, by group. */
  private takeDue(): Map<string, Owed[]> {
    const groups = new Map<string, Owed[]>()
    for (const [key, owed] of this.owed) {
      if (this.options.isAway(owed.check)) continue
      this.owed.delete(key)
      const group = this.options.groupOf(owed.check)
      const others = groups.get(group)
      if (others === undefined) groups.set(group, [owed])
      else others.push(owed)
    }
    return groups
  }

  private async charge(all: readonly Owed[]): Promise<void> {
    const nowUs = this.options.clock.nowUs()
    const due: Owed[] = []
    for (const owed of all) {
      if (owed.untilUs <= nowUs) this.drop(owed)
      else if (owed.units > 0) due.push(owed)
    }
    if (due.length === 0) return
    try {
      await this.options.charge(due.map(({ check, units }) => ({ check, units: -units, chargedAtUs: null })))
    } catch (error) {
      const again = this.options.wasNotSent(error)
      for (const owed of due) again ? this.add(owed) : this.drop(owed)
      return
    }
    for (const { check, units } of due) this.options.onCharged(check.name, units, false)
  }

  private drop({ check, units }: Owed): void {
    if (units > 0) this.options.onCharged(check.name, units, true)
  }
}
