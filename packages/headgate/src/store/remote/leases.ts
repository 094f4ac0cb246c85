/**
 * Units of hot keys taken in advance and spent in this process (`Leasing` of an algorithm says why that admits no more).
 *
 * A key that is asked for now and then never leases. One that keeps coming back takes a few units, twice as many while
 * they are spent before their time is up, half as many when some are left over, and never more than this process's part
 * of what remains. What is left over goes back. A process that dies takes what it holds with it: it counts as spent.
 *
 * Invariant: every unit admitted here was charged at most one TTL before, and in the counter's own window.
 */
import { type Lease, type Leasing, NOT_CHARGED } from '../../algorithms/algorithm.js'
import { type Check, isSameState, type Refund } from '../../check/check.js'
import { type CheckWaiter, PendingCheck } from '../../check/pending-check.js'
import { type NamedLimit, Plan } from '../../check/plan.js'
import type { Clock, Timers } from '../../time/clock.js'
import type { MaybePromise } from '../store.js'
import { CheckMap } from './check-map.js'
import type { AskedAt } from './deny-cache.js'

/** How many keys are tracked, hot or not. */
const MAX_KEYS = 10_000
/** How many requests within one TTL make a key hot. */
const HOT_AFTER = 4
/** A lease that is idle for this part of its time is given back. */
const IDLE_PARTS = 4
const MOST_SWEEP_MS = 50
const LEAST_SWEEP_MS = 5

export interface LeasesOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** Returns how many processes share what remains. */
  liveProcesses(): number
  /** Asks the store itself. */
  ask(check: PendingCheck): void
  /** For the denials that a grant brings. */
  askedAt(): AskedAt | null
  /** Decides a check from what is written into it; `askedAt` is set if it was denied by the store. */
  settle(check: PendingCheck, askedAt: AskedAt | null): void
  /** Decides a check whose grant failed. */
  fail(check: PendingCheck, error: unknown): void
  refund(refunds: readonly Refund[]): MaybePromise<unknown>
  /** Sees to it that a check that waits for a grant does not wait for longer than a call may take. */
  watch(check: PendingCheck): void
  /** Called for every grant with the limit's name and the units taken. */
  onGrant(limit: string, units: number): void
}

export class Leases {
  private readonly held: CheckMap<HeldUnits>
  private cancelSweep: (() => void) | null = null
  private isClosed = false

  constructor(private readonly options: LeasesOptions) {
    this.held = new CheckMap(MAX_KEYS, dropped => void this.leave(dropped))
  }

  /**
   * Spends units that are held here, or lets the check wait for a grant. Returns false for a check that the store has to
   * be asked: a cold key, or one that may not be leased.
   */
  take(check: PendingCheck): boolean {
    const lease = this.isClosed ? null : leaseOf(check)
    return lease !== null && this.takeLeased(check, lease)
  }

  private takeLeased(check: PendingCheck, lease: Lease): boolean {
    const nowUs = this.options.clock.nowUs()
    const key = check.checkOf(0)
    const held = this.held.get(key)
    if (held === undefined || held.plan !== check.asked) {
      if (check.isPeek) return false
      if (held !== undefined) this.end(held)
      this.held.set(key, new HeldUnits(check, lease, nowUs))
      return false
    }
    if (held.has(check.unitsOf(0), nowUs)) {
      held.spend(check, nowUs)
      this.options.settle(check, null)
      return true
    }
    if (check.isPeek || !held.isHot(nowUs)) return false
    this.waitForGrant(held, check)
    return true
  }

  /** Those who find too few units wait for one grant together. */
  private waitForGrant(held: HeldUnits, check: PendingCheck): void {
    const units = check.unitsOf(0)
    this.options.watch(check)
    held.waiting.push(check)
    held.wanted += units
    held.least = held.least === 0 ? units : Math.min(held.least, units)
    if (held.isGranting) return
    held.isGranting = true
    const soon = this.options.timers.afterThisCode ?? queueMicrotask
    soon(() => this.requestGrant(held))
  }

  /** Asks for what is wanted and some more; for less, and finally for one request, if there is not as much. */
  private requestGrant(held: HeldUnits): void {
    this.outgrow(held)
    const amounts = held.amounts(this.options.liveProcesses())
    const check = held.grantOf(amounts, this.options.clock.nowUs())
    check.onSettled(new Grant(this, this.options, held, amounts, check.atUs))
    this.options.ask(check)
  }

  /** Ends an old lease: the next one is twice as large if it was all spent in time, half as large if not. */
  private outgrow(held: HeldUnits): void {
    if (held.left > 0) {
      held.halve()
      this.giveBack(held)
    } else if (held.sentAtUs > 0) {
      const isInTime = this.options.clock.nowUs() < held.expiresAtUs
      if (isInTime) held.size = Math.min(held.lease.max, held.size * 2)
      else held.halve()
    }
  }

  /** Gives back the units that are held. If it fails, it is unknown whether it arrived; it is not repeated and counts as spent. */
  giveBack(held: HeldUnits): Promise<unknown> | undefined {
    const refunds = held.takeUnspent()
    if (refunds.length === 0) return undefined
    return Promise.resolve(this.options.refund(refunds)).catch(() => {})
  }

  /** The units of these keys were forgotten with everything else: they must neither be spent nor given back. */
  forget(checks: readonly Check[]): void {
    for (const held of this.held.values()) {
      if (!held.checks.some(one => checks.some(check => isSameState(one, check)))) continue
      held.left = 0
      this.end(held)
    }
  }

  private end(held: HeldUnits): void {
    held.isEnded = true
    void this.giveBack(held)
    this.held.delete(held.checks[0] as Check)
  }

  /** Gives back what is held, and what a grant in flight will bring beyond those who wait for it. */
  private async leave(held: HeldUnits): Promise<void> {
    if (held.isGranting) {
      await new Promise<void>(resolve => {
        held.onServed = resolve
      })
    }
    await this.giveBack(held)
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.cancelSweep?.()
    await Promise.all([...this.held.values()].map(held => this.leave(held)))
  }

  sweepLater({ ttlUs }: Lease): void {
    const idleMs = Math.round(ttlUs / 1000 / IDLE_PARTS)
    const waitMs = Math.max(LEAST_SWEEP_MS, Math.min(MOST_SWEEP_MS, idleMs))
    this.cancelSweep ??= this.options.timers.inBackground(waitMs, () => this.sweep())
  }

  /** Gives back what nobody has asked for in a while, or may no longer be spent. */
  private sweep(): void {
    this.cancelSweep = null
    const nowUs = this.options.clock.nowUs()
    let shortest: Lease | null = null
    for (const held of this.held.values()) {
      if (held.left === 0) continue
      const { lease } = held
      const isIdle = nowUs - held.usedAtUs >= lease.ttlUs / IDLE_PARTS
      if (nowUs < held.expiresAtUs && !isIdle) {
        shortest = shortest === null || lease.ttlUs < shortest.ttlUs ? lease : shortest
      } else if (!held.isGranting) {
        held.halve()
        void this.giveBack(held)
      }
    }
    if (shortest !== null) this.sweepLater(shortest)
  }
}

/** How a check may be leased; null if it may not be: something in it is not leased, or not uniform. */
function leaseOf(check: PendingCheck): Lease | null {
  const { asked, more } = check
  const lease = asked.limits[0]?.limit.lease
  if (lease === undefined || check.unitsOf(0) === 0) return null
  if (asked.isSingle && more === null) return lease
  if (asked.ends.length > 1 || asked.hasShadow || asked.targets.length > 0) return null
  for (let index = 0; index < asked.limits.length; index++) {
    const { limit } = asked.limits[index] as NamedLimit
    if (limit.lease === undefined || check.unitsOf(index) !== check.unitsOf(0)) return null
  }
  return lease
}

/** The units of one leased key that this process holds, and who waits for more. */
class HeldUnits {
  readonly plan: Plan
  readonly checks: readonly Check[]
  left = 0
  size = 1
  expiresAtUs = 0
  sentAtUs = 0
  usedAtUs = 0
  remaining = Number.POSITIVE_INFINITY
  /** What the grant said of each limit. */
  granted: PendingCheck | null = null
  /** Whether a request was admitted with units of that grant. */
  private isSpentOf = false
  grantedFrom = 0
  hits = 1
  hitsSinceUs: number
  /** Checks that wait for the grant in flight, the units they want, and the least that one of them wants. */
  waiting: PendingCheck[] = []
  wanted = 0
  least = 0
  isGranting = false
  /** Called when those who waited for a grant have been served. */
  onServed: (() => void) | null = null
  isEnded = false

  constructor(
    private readonly first: PendingCheck,
    readonly lease: Lease,
    nowUs: number,
  ) {
    this.plan = first.asked
    this.checks = first.asked.limits.map((_, index) => first.checkOf(index))
    this.hitsSinceUs = nowUs
  }

  isHot(nowUs: number): boolean {
    if (nowUs - this.hitsSinceUs > this.lease.ttlUs) {
      this.hitsSinceUs = nowUs
      this.hits = 0
    }
    return ++this.hits > HOT_AFTER || this.isGranting
  }

  /** Whether as many units are held, and may still be spent. */
  has(units: number, nowUs: number): boolean {
    return this.left >= units && nowUs < this.expiresAtUs
  }

  /** Writes the numbers of a check that is admitted from here: what the store had when it was asked, plus what is held. */
  spend(check: PendingCheck, nowUs: number): void {
    // Whoever spends of a grant first tells what its charge has reached.
    const isFirst = !check.isPeek && !this.isSpentOf
    if (!check.isPeek) {
      this.left -= check.unitsOf(0)
      this.usedAtUs = nowUs
      this.isSpentOf = true
    }
    const passedUs = nowUs - this.sentAtUs
    for (let index = 0; index < this.plan.limits.length; index++) {
      const { granted, grantedFrom } = this
      const at = grantedFrom + index
      const remaining = (granted as PendingCheck).left(at) + this.left
      const resetAfterUs = Math.max(0, (granted as PendingCheck).resetAfter(at) - passedUs)
      const chargedAtUs = check.isPeek ? NOT_CHARGED : (granted as PendingCheck).chargedAt(at)
      if (isFirst) check.told = (granted as PendingCheck).toldBeside(at)
      check.set(index, 0, remaining, resetAfterUs, chargedAtUs)
    }
    check.charged = 0
    check.isLeased = true
  }

  halve(): void {
    this.size = Math.max(1, this.size >> 1)
  }

  /** The amounts to ask for: the preferred one, a quarter of it, and one request's worth. */
  amounts(processes: number): number[] {
    const { wanted, least, size, lease, remaining } = this
    // Half of an equal part, so that those who ask a moment later find something too.
    const fair = Number.isFinite(remaining) ? Math.floor(remaining / (2 * Math.max(1, processes))) : size
    const most = Math.max(least, Math.min(Math.max(size, wanted), lease.max, fair))
    return [...new Set([most, Math.max(least, most >> 2), least])]
  }

  /** The check that takes the first of these amounts that fits. */
  grantOf(amounts: readonly number[], nowUs: number): PendingCheck {
    const { first } = this
    const { limits } = this.plan
    const plan = grantPlan(this.plan, amounts.length)
    const units = amounts.flatMap(amount => limits.map(() => amount))
    const scope = first.scopeOf(0)
    const grant = new PendingCheck(plan, first.subject, amounts[0] as number, {
      scope,
      isPeek: false,
      others: [],
      units,
      onStoreFailure: null,
    })
    grant.atUs = nowUs
    grant.isInternal = true
    return grant
  }

  /** Takes over what a grant has brought. */
  take(
    grant: PendingCheck,
    amounts: readonly number[],
    sentAtUs: number,
    nowUs: number,
    wanted: number,
  ): number {
    const units = amounts[grant.charged] as number
    if (grant.charged > 0) this.size = Math.max(1, units)
    this.granted = grant
    this.isSpentOf = false
    this.grantedFrom = grant.plan.start(grant.charged)
    this.remaining = Number.POSITIVE_INFINITY
    let lastsUs = this.lease.ttlUs
    for (const [index, { limit }] of this.plan.limits.entries()) {
      this.remaining = Math.min(this.remaining, grant.left(this.grantedFrom + index))
      const leasing = limit.algorithm.lease as Leasing
      const chargedAtUs = grant.chargedAt(this.grantedFrom + index)
      lastsUs = Math.min(lastsUs, leasing.lastsUs(limit, limit.lease ?? this.lease, chargedAtUs))
    }
    this.sentAtUs = sentAtUs
    this.usedAtUs = nowUs
    // From when it was sent, which is never later than when it was charged.
    this.expiresAtUs = sentAtUs + lastsUs
    // A key that was reset in the meantime has been forgotten: only those who waited for the grant get some of it.
    this.left = this.isEnded ? Math.min(units, wanted) : units
    return units
  }

  /** What nobody has spent, without what a bucket has refilled by itself: it goes back. */
  takeUnspent(): Refund[] {
    const { left: units, checks, granted, grantedFrom } = this
    this.left = 0
    if (units === 0 || granted === null) return []
    return checks.map((check, index) => {
      const chargedAtUs = granted.chargedAt(grantedFrom + index)
      return { check, units, chargedAtUs, heldSinceUs: chargedAtUs }
    })
  }

  /** Returns those who waited for a grant. From now on requests wait for another one. */
  served(): readonly PendingCheck[] {
    const { waiting } = this
    this.waiting = []
    this.wanted = 0
    this.least = 0
    this.isGranting = false
    return waiting
  }
}

/** A grant in flight: on its way back it serves those who waited for it. */
class Grant implements CheckWaiter {
  private readonly wanted: number
  private readonly least: number
  /** Those who asked before it was sent; for later ones it may have been decided before they asked. */
  private readonly early: number
  private readonly askedAt: AskedAt | null

  constructor(
    private readonly leases: Leases,
    private readonly options: LeasesOptions,
    private readonly held: HeldUnits,
    private readonly amounts: readonly number[],
    private readonly sentAtUs: number,
  ) {
    this.wanted = held.wanted
    this.least = held.least
    this.early = held.waiting.length
    this.askedAt = options.askedAt()
  }

  settled(grant: PendingCheck): void {
    const { held } = this
    if (grant.charged >= 0) {
      const nowUs = this.options.clock.nowUs()
      const units = held.take(grant, this.amounts, this.sentAtUs, nowUs, this.wanted)
      this.options.onGrant((held.checks[0] as Check).name, units)
      if (!held.isEnded) this.leases.sweepLater(held.lease)
      this.serve(null)
    } else {
      held.remaining = 0
      held.size = 1
      this.serve(grant)
    }
    held.onServed?.()
  }

  failed(error: unknown): void {
    for (const check of this.held.served()) if (!check.isSettled) this.options.fail(check, error)
    this.held.onServed?.()
  }

  /** Those who asked for as much as was denied are denied together; those who find nothing left ask for themselves. */
  private serve(denied: PendingCheck | null): void {
    const { held } = this
    const nowUs = this.options.clock.nowUs()
    for (const [index, check] of held.served().entries()) {
      if (check.isSettled) continue
      const units = check.unitsOf(0)
      if (held.has(units, nowUs)) {
        held.spend(check, nowUs)
        this.options.settle(check, null)
      } else if (denied !== null && units === this.least && index < this.early) {
        this.deny(check, denied)
        this.options.settle(check, this.askedAt)
      } else this.options.ask(check)
    }
  }

  /** The least amount was asked for last. */
  private deny(check: PendingCheck, denied: PendingCheck): void {
    const from = denied.plan.start(this.amounts.length - 1)
    for (let index = 0; index < check.plan.limits.length; index++) {
      const at = from + index
      check.set(index, denied.wait(at), denied.left(at), denied.resetAfter(at), NOT_CHARGED)
    }
    check.charged = -1
  }
}

const grantPlans = new WeakMap<Plan, Plan[]>()

/** The plan of the limits of another one, as so many alternatives. */
function grantPlan(plan: Plan, alternatives: number): Plan {
  let known = grantPlans.get(plan)
  if (known === undefined) {
    known = []
    grantPlans.set(plan, known)
  }
  let made = known[alternatives]
  if (made === undefined) {
    const { length } = plan.limits
    const all = Array.from({ length: alternatives })
    made = new Plan(
      plan.context,
      plan.labels,
      all.flatMap(() => plan.limits),
      all.map((_, index) => (index + 1) * length),
    )
    known[alternatives] = made
  }
  return made
}
