/**
 * The limits of this process while the store cannot be asked: its share of every limit, limit ÷ live processes, so that
 * the fleet together stays near the limit instead of multiplying it.
 *
 * A share below one unit becomes one unit in a longer window. A cost above the share but within the limit takes an
 * untouched share whole, and the rest is a debt that keeps the key closed until it would have been earned. A key
 * starts from what the store last said was left of it; of a quota of which nothing is known, from a day's part. A ban that
 * the store has told of lasts here as long.
 *
 * Who is denied waits until the share has room. Of a quota that may have more left than this process may give away, that would
 * be the end of the period: such a caller waits until the store may be back.
 */
import { type Limit, NEVER, NOT_CHARGED } from '../../algorithms/algorithm.js'
import { type Check, type Refund, type Renewal, stateOf } from '../../check/check.js'
import { PendingCheck } from '../../check/pending-check.js'
import { NamedLimit, NO_LABELS, NOBODY_LISTENS, Plan } from '../../check/plan.js'
import type { Clock } from '../../time/clock.js'
import { MemoryStore } from '../memory/memory-store.js'
import { CheckMap } from './check-map.js'

/** What the store last said of a key. */
interface Known {
  /** Infinite if it has said nothing. */
  remaining: number
  /** When it said so. */
  atUs: number
  /** When the period of a quota ends: nothing is known of the next one. */
  endsAtUs: number
  /** When a ban ends that it told of; null if there is none. */
  bannedUntilUs: number | null
  isSeeded: boolean
  /** Units charged to the share for others when the store was last lost, and when. */
  seed: { readonly units: number; readonly atUs: number } | null
}

/** The most recently used half of these always stays: a hundred thousand callers. */
const MAX_KNOWN = 200_000
const MAX_DEBTS = 100_000
/** A store that is back is found within a second. */
const STORE_BACK_US = 1_000_000

export class LocalShare {
  private readonly memory: MemoryStore
  private readonly known = new CheckMap<Known>(MAX_KNOWN)
  private readonly debts: Debts
  /** The plans of this process's share, by the plan they are of, for so many processes. */
  private shares = new WeakMap<Plan, Plan>()
  private sharedAmong = 0
  /** Whether any limit was a quota. */
  hasQuotas = false

  constructor(
    private readonly clock: Clock,
    private readonly liveProcesses: () => number,
  ) {
    this.memory = new MemoryStore({ clock })
    this.debts = new Debts(clock, MAX_DEBTS)
  }

  /** Decides without the store: writes the numbers of this process's share into the check. */
  decide(check: PendingCheck): void {
    const { asked, more } = check
    const share = this.shareOf(asked)
    const units = asked.limits.map((_, index) => this.unitsFrom(check, share, index))
    const { subject, cost, others } = check
    const own = new PendingCheck(share, subject, cost, {
      scope: more?.scope ?? 'global',
      isPeek: check.isPeek,
      others,
      units,
      onStoreFailure: null,
    })
    this.memory.charge(own, share, this.clock.nowUs())
    check.charged = own.charged
    for (let index = 0; index < asked.limits.length; index++) {
      check.set(
        index,
        this.waitOf(check, own, index),
        own.left(index),
        own.resetAfter(index),
        own.chargedAt(index),
      )
    }
    if (!check.isPeek && check.charged >= 0) this.runIntoDebt(check, share)
  }

  /** Gives back what was charged without the store. */
  refund(refunds: readonly Refund[]): readonly number[] {
    return this.memory.refund(refunds.map(refund => ({ ...refund, check: this.ownCheck(refund.check) })))
  }

  renew(renewals: readonly Renewal[]): readonly boolean[] {
    return this.memory.renew(renewals.map(renewal => ({ ...renewal, check: this.ownCheck(renewal.check) })))
  }

  /**
   * Remembers what the store said is left. A key of which more than half, and more than all other shares, is left needs
   * no note: its untouched share is no more than that. Of a quota every caller is noted, because its share is no part of
   * what one outage should give away.
   */
  learn(check: PendingCheck): void {
    const { plan } = check
    if (plan.isSingle) {
      this.learnOf(check, 0)
      return
    }
    const end = check.charged < 0 ? plan.shadowFrom : (plan.ends[check.charged] as number)
    for (let index = 0; index < end; index++) this.learnOf(check, index)
  }

  private learnOf(check: PendingCheck, index: number): void {
    const { limit, algorithm } = (check.asked.limits[index] as NamedLimit).limit
    const remaining = check.left(index)
    if (algorithm.account !== undefined) {
      this.hasQuotas = true
      this.note(check.checkOf(index), remaining, this.clock.nowUs() + check.resetAfter(index))
      return
    }
    if (algorithm.strikes !== undefined) {
      this.learnBan(check, index)
      return
    }
    const isAmple = remaining * 2 >= limit && remaining >= limit - Math.floor(limit / this.liveProcesses())
    if (!isAmple || this.known.size > 0)
      this.note(check.checkOf(index), remaining, Number.POSITIVE_INFINITY, isAmple)
  }

  /** A ban that the store has made outlasts the store. */
  private learnBan(check: PendingCheck, index: number): void {
    const waitUs = check.wait(index)
    if (waitUs === 0 && this.known.size === 0) return
    const state = check.checkOf(index)
    const atUs = this.clock.nowUs()
    const bannedUntilUs = atUs + waitUs
    const entry = this.known.get(state)
    if (entry !== undefined) Object.assign(entry, { bannedUntilUs, isSeeded: false })
    else if (waitUs > 0)
      this.known.set(state, {
        remaining: 0,
        atUs,
        endsAtUs: Number.POSITIVE_INFINITY,
        bannedUntilUs,
        isSeeded: false,
        seed: null,
      })
  }

  private note(check: Check, remaining: number, endsAtUs: number, isAmple = false): void {
    const entry = this.known.get(check)
    const atUs = this.clock.nowUs()
    if (entry !== undefined) {
      entry.remaining = remaining
      entry.atUs = atUs
      entry.endsAtUs = endsAtUs
      entry.isSeeded = false
    } else if (!isAmple) {
      this.known.set(check, { remaining, atUs, endsAtUs, bannedUntilUs: null, isSeeded: false, seed: null })
    }
  }

  /** The plan of this process's share, made once for each plan and number of processes. */
  private shareOf(plan: Plan): Plan {
    const processes = this.liveProcesses()
    if (processes !== this.sharedAmong) this.shares = new WeakMap()
    this.sharedAmong = processes
    let share = this.shares.get(plan)
    if (share === undefined) {
      share = plan.map(({ name, limit }) => new NamedLimit(name, limit.algorithm.share(limit, processes)))
      this.shares.set(plan, share)
    }
    return share
  }

  private ownCheck(check: Check): Check {
    return { ...check, limit: check.limit.algorithm.share(check.limit, this.liveProcesses()) }
  }

  /** The units that a limit of the check takes from the share: `NEVER` while the key is in debt. */
  private unitsFrom(check: PendingCheck, share: Plan, index: number): number {
    const whole = (check.asked.limits[index] as NamedLimit).limit
    const { limit } = share.limits[index] as NamedLimit
    const state = { ...check.checkOf(index), limit }
    this.seed(state, whole)
    const isIndebted = this.debts.leftUs(state) > 0
    // Above the whole limit it stays above the share, and is denied for good.
    if (state.cost <= limit.limit || state.cost > whole.limit) return isIndebted ? NEVER : state.cost
    return isIndebted || !this.debts.hasRoom() ? NEVER : limit.limit
  }

  /**
   * Charges the share with what the store had already given away, once per outage. What this process gave away by
   * itself stays charged: the store never heard of it, and one that comes and goes would otherwise give out the
   * share again each time.
   */
  private seed(state: Check, whole: Limit): void {
    const entry = this.known.size === 0 ? undefined : this.known.get(state)
    if (entry === undefined) this.seedUnknown(state, whole)
    if (entry === undefined || entry.isSeeded) return
    entry.isSeeded = true
    const { bannedUntilUs } = entry
    if (bannedUntilUs !== null) {
      if (bannedUntilUs > this.clock.nowUs()) this.memory.exhaust(state, bannedUntilUs)
      return
    }
    this.takeSeedBack(state, entry, whole)
    const nowUs = this.clock.nowUs()
    if (nowUs - entry.atUs >= state.limit.quota.windowUs || nowUs >= entry.endsAtUs) return
    const left = Math.floor(entry.remaining / this.liveProcesses())
    const units = this.ask(state, 0).remaining - left
    if (units <= 0) return
    const charged = this.ask(state, units)
    if (charged.chargedAtUs !== NOT_CHARGED) entry.seed = { units, atUs: charged.chargedAtUs }
  }

  /** A caller of whose quota nothing is known has a day's part of it, divided among the processes, and a unit at least. */
  private seedUnknown(state: Check, whole: Limit): void {
    const perDay = whole.algorithm.account?.perDay(whole)
    if (perDay === undefined) return
    this.hasQuotas = true
    const nothing = Number.POSITIVE_INFINITY
    this.known.set(state, {
      remaining: nothing,
      atUs: this.clock.nowUs(),
      endsAtUs: nothing,
      bannedUntilUs: null,
      isSeeded: true,
      seed: null,
    })
    const part = Math.max(1, Math.floor(perDay / this.liveProcesses()))
    const units = this.ask(state, 0).remaining - part
    if (units > 0) this.ask(state, units)
  }

  /** Takes an earlier seed out of the share, as far as it still counts there. */
  private takeSeedBack(state: Check, entry: Known, whole: Limit): void {
    if (entry.seed === null) return
    const { units, atUs } = entry.seed
    // A bucket takes back whatever it is given, so what has been refilled since must not be given twice. Computed
    // at the rate of the whole limit, because a process that was alone until now had all of it.
    const due = Math.floor(units - whole.algorithm.refilled(whole, atUs, this.clock.nowUs()))
    if (due > 0) this.memory.refund([{ check: state, units: due, chargedAtUs: atUs }])
    entry.seed = null
  }

  /** Charges units of one state, or looks at it with 0. */
  private ask(state: Check, units: number): PendingCheck {
    const plan = new Plan(NOBODY_LISTENS, NO_LABELS, [new NamedLimit(state.name, state.limit)])
    const more = { scope: state.scope, isPeek: units === 0, others: [], units: [units], onStoreFailure: null }
    const asked = new PendingCheck(plan, state.subject, units, more)
    this.memory.charge(asked, plan, this.clock.nowUs())
    return asked
  }

  private waitOf(check: PendingCheck, own: PendingCheck, index: number): number {
    const waitUs = own.wait(index)
    const state = check.checkOf(index)
    const { limit, algorithm } = (check.asked.limits[index] as NamedLimit).limit
    if (waitUs === 0 || state.cost > limit) return waitUs
    if (algorithm.account !== undefined && !this.isUsedUp(state)) return Math.min(waitUs, STORE_BACK_US)
    const debtUs = this.debts.leftUs(state)
    if (debtUs > 0) return debtUs
    // Denied for lack of room among the debts: not for good, as the algorithm concludes from its cost.
    return waitUs === NEVER ? state.limit.quota.windowUs : waitUs
  }

  /** Whether the store itself has said that so much is not left of a quota. */
  private isUsedUp(state: Check): boolean {
    const entry = this.known.get(state)
    return entry !== undefined && entry.remaining < state.cost && this.clock.nowUs() < entry.endsAtUs
  }

  private runIntoDebt(check: PendingCheck, share: Plan): void {
    const end = check.plan.ends[check.charged] as number
    for (let index = check.plan.start(check.charged); index < end; index++) {
      const { limit } = share.limits[index] as NamedLimit
      const state = check.checkOf(index)
      if (state.cost <= limit.limit || limit.limit === 0) continue
      const windows = state.cost / limit.limit
      this.debts.add(state, Math.ceil(windows * limit.quota.windowUs))
    }
  }
}

/**
 * Keys that took more than this process's share, and until when they are closed for it. None is forgotten early:
 * otherwise a key in debt could get free by driving others into debt. When there are too many, no further key may take
 * more than the share.
 */
export class Debts {
  private readonly untilUs = new Map<string, number>()
  private sweepAfterUs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly clock: Clock,
    private readonly max: number,
  ) {}

  get size(): number {
    return this.untilUs.size
  }

  /** Returns how long a key is still closed. */
  leftUs(check: Check): number {
    if (this.untilUs.size === 0) return 0
    const key = stateOf(check)
    const untilUs = this.untilUs.get(key)
    if (untilUs === undefined) return 0
    const leftUs = untilUs - this.clock.nowUs()
    if (leftUs <= 0) this.untilUs.delete(key)
    return Math.max(0, leftUs)
  }

  /** Whether one more key may go into debt. */
  hasRoom(): boolean {
    if (this.untilUs.size >= this.max) this.sweep()
    return this.untilUs.size < this.max
  }

  add(check: Check, forUs: number): void {
    this.untilUs.set(stateOf(check), this.clock.nowUs() + forUs)
  }

  /** Not run for every request that finds no room, because it looks at all of them. */
  private sweep(): void {
    const nowUs = this.clock.nowUs()
    if (nowUs < this.sweepAfterUs) return
    this.sweepAfterUs = nowUs + SWEEP_EVERY_US
    for (const [key, untilUs] of this.untilUs) if (untilUs <= nowUs) this.untilUs.delete(key)
  }
}

const SWEEP_EVERY_US = 1_000_000
