/**
 * A store that is not in this process. Every check is decided within the deadline, whatever happens to the store:
 *
 *   known denial → lease → breaker open? local share : batch → send with a deadline → settle
 *
 * A check of several subjects on a cluster is split by slot before the batch; the share of a region replaces the limits
 * that are asked; a cap on calls and the wait for the first connection are at `send`.
 */
import type {
  Check,
  Credit,
  Credited,
  DecisionSource,
  FailureMode,
  Refund,
  Renewal,
} from '../../check/check.js'
import { PendingCheck } from '../../check/pending-check.js'
import { NamedLimit, NO_LABELS, NOBODY_LISTENS, Plan } from '../../check/plan.js'
import { HeadgateError, isHeadgateError } from '../../errors/headgate-error.js'
import { inThisContext, safely } from '../../observe/emit.js'
import { slotSubject } from '../../subject/subject.js'
import type { Clock, Timers } from '../../time/clock.js'
import type { MaybePromise, Store } from '../store.js'
import { type Batch, Batches } from './batch.js'
import { type Call, CheckCall, PromisedCall } from './call.js'
import { Deadlines } from './deadlines.js'
import { type AskedAt, DenyCache } from './deny-cache.js'
import { createFleet, type Fleet } from './fleet.js'
import { LateCharges } from './late-charges.js'
import { Leases } from './leases.js'
import { LocalShare } from './local-share.js'
import { logOutages } from './log-outages.js'
import { isStoreFailure, Nodes, wasNotSent } from './nodes.js'
import { RegionLimits } from './region-share.js'
import type { Remote } from './remote.js'
import type { RemoteSettings } from './remote-options.js'
import { inGroups, isInOneSlot, Splitter } from './split.js'
import { type OnStoreEvent, type StoreEvent, type StoreHealth, StoreTally } from './store-event.js'

/** Clock, timers and randomness. A simulation passes in its own. */
export interface World {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  /** SHA-1 in hexadecimal; null if scripts are not to be made at run time. Default: what the runtime has. */
  readonly sha1?: ((text: string) => string) | null
  /** Called for every call that is sent, with the promise of its answer. */
  onSent?(reply: Promise<unknown>): void
}

const HEARTBEAT_MS = 1_000
const SECOND_US = 1_000_000

export class RemoteStore implements Store {
  readonly source: DecisionSource
  readonly onStoreFailure?: FailureMode
  readonly #remote: Remote
  readonly #settings: RemoteSettings
  readonly #clock: Clock
  readonly #onEvent: OnStoreEvent
  readonly #tally = new StoreTally()
  readonly #fleet: Fleet
  readonly #denials: DenyCache | null
  readonly #region: RegionLimits | null
  readonly #leases: Leases
  readonly #local: LocalShare
  readonly #late: LateCharges
  readonly #splitter: Splitter | null
  readonly #batches: Batches
  /** Null in the mode `throw`, in which every call is made. */
  readonly #nodes: Nodes | null
  readonly #deadlines: Deadlines
  #inFlight = 0
  #onDrained: (() => void) | null = null
  /** The calls made in this second of the clock. */
  #second = 0
  #callsInSecond = 0
  #closing: Promise<void> | null = null

  constructor(remote: Remote, settings: RemoteSettings, world: World) {
    const { mode, deniedSubjects, maxChecks, deadlineMs, recorder, share } = settings
    const { clock, timers, random } = world
    this.source = remote.source
    if (mode !== 'throw') this.onStoreFailure = mode
    this.#remote = remote
    this.#settings = settings
    this.#clock = clock
    const log = logOutages({
      logger: settings.logger,
      everyMs: settings.logEveryMs,
      mode,
      nameOf: remote.nameOf,
      nowMs: () => clock.nowUs() / 1000,
      sharedAmong: () => this.#fleet.mayBeLive(),
      hasQuotas: () => this.#local.hasQuotas,
    })
    this.#onEvent = eventsOf(settings, safely(log), event => this.#tally.count(event))
    this.#fleet = fleetOf(remote, settings, timers, this.#onEvent)
    if (recorder !== null) recorder.callCapPerSecond = settings.maxCallsPerSecond
    this.#denials = deniedSubjects === 0 ? null : new DenyCache(remote.testClock ?? clock, deniedSubjects)
    this.#region = share === null ? null : new RegionLimits(share)
    this.#local = new LocalShare(clock, () => this.#fleet.mayBeLive())
    this.#late = new LateCharges({
      clock,
      timers,
      groupOf: ({ subject }) => (remote.isSplit ? slotSubject(subject) : ''),
      isAway: check =>
        (this.#nodes?.unavailable(remote.isSplit ? remote.nodeOf(check) : '') ?? null) !== null,
      charge: refunds => this.#refundInStore(refunds),
      wasNotSent,
      onCharged: (limit, units, isDropped) =>
        this.#onEvent({ type: 'late-charge', limit, units, dropped: isDropped }),
    })
    this.#leases = new Leases({
      clock,
      timers,
      liveProcesses: () => this.#fleet.live(),
      ask: check => this.#ask(check),
      askedAt: () => this.#denials?.mark() ?? null,
      settle: (check, askedAt) => this.#settleOne(check, askedAt),
      fail: (check, error) => this.#decideWithoutStore(check, error),
      refund: refunds => this.#refundInStore(refunds),
      watch: check => this.#watch(check),
      onGrant: (limit, units) => this.#onEvent({ type: 'lease', limit, units }),
    })
    this.#splitter = remote.isSplit
      ? new Splitter({ ask: check => this.#add(check), refund: refunds => this.#refundInStore(refunds) })
      : null
    this.#batches = new Batches({
      maxChecks,
      timers,
      keyOf: check => remote.batchKeyOf(check),
      testTime: () => remote.testTime?.() ?? '',
      askedAt: () => this.#denials?.mark() ?? null,
      isBusy: () => this.#inFlight > 0,
      send: batch => this.#sendChecks(batch),
    })
    this.#deadlines = new Deadlines({
      deadlineMs,
      clock,
      timers,
      oneTimerEach: remote.onDemand === true,
      firstConnection: remote.firstConnection,
    })
    this.#nodes =
      mode === 'throw'
        ? null
        : new Nodes({
            ...settings.breaker,
            clock,
            timers,
            random,
            onEvent: this.#onEvent,
            replaceConnection: node => remote.replaceConnection?.(node),
            probe: (node, sample) => this.#probe(node, sample),
          })
    remote.onConnected?.(() => this.#nodes?.probeNow())
  }

  // Deciding.

  decide(check: PendingCheck): void {
    if (this.#denials?.answer(check)) {
      check.settle(this.source)
      return
    }
    if (this.#region !== null) check.asked = this.#region.planOf(check.plan)
    if (this.#leases.take(check)) return
    this.#ask(check)
  }

  /** Asks the store: as one check, or as several if its subjects are in different slots. */
  #ask(check: PendingCheck): void {
    if (this.#splitter === null || isInOneSlot(check)) this.#add(check)
    else this.#askSlots(check, this.#splitter)
  }

  #askSlots(check: PendingCheck, splitter: Splitter): void {
    this.#watch(check)
    splitter.decide(check).then(
      () => this.#settleOne(check, null),
      error => this.#decideWithoutStore(check, error),
    )
  }

  #add(check: PendingCheck): void {
    const away = this.#nodes?.isAnyAway ? this.#nodes.unavailable(this.#nodeOf(check)) : null
    if (away !== null) this.#decideWithoutStore(check, away)
    else this.#batches.add(check)
  }

  #nodeOf(check: PendingCheck): string {
    return !this.#remote.isSplit || check.plan.limits.length === 0
      ? ''
      : this.#remote.nodeOf(check.checkOf(0))
  }

  #sendChecks(batch: Batch): void {
    const { isPeek, testTime, checks: asked } = batch
    // Those of one slot share a call, and a check without limits is in no slot.
    const first = asked.find(check => check.plan.limits.length > 0) ?? asked[0]
    const node = this.#nodeOf(first as PendingCheck)
    const make = (checks: readonly PendingCheck[]): Promise<unknown> =>
      this.#remote.ask(checks, isPeek, testTime)
    this.#send(new CheckCall(node, batch, make, call => this.#fail(call, this.#timeout())))
  }

  /** Makes a call, unless it must not be made: its answer, an error or the deadline ends it, whichever comes first. */
  #send(call: Call): void {
    this.#inFlight++
    const rejection = this.#capped() ?? this.#nodes?.enter(call) ?? null
    if (rejection !== null) {
      this.#fail(call, rejection)
      return
    }
    const connected = this.#remote.firstConnection?.wait()
    if (connected === undefined) this.#sendNow(call)
    else
      connected.then(
        () => this.#sendNow(call),
        error => this.#fail(call, error),
      )
  }

  #sendNow(call: Call): void {
    const { recorder } = this.#settings
    call.sentAtUs = this.#clock.nowUs()
    if (recorder !== null) {
      recorder.calls++
      recorder.checks += call.checkCount
    }
    let reply: Promise<unknown>
    try {
      reply = call.send()
    } catch (error) {
      this.#fail(call, error)
      return
    }
    this.#nodes?.sent(call)
    reply.then(
      value => {
        this.#nodes?.cameBack(call, true)
        this.#settle(call, value)
      },
      error => {
        this.#nodes?.cameBack(call, false)
        this.#fail(call, error)
      },
    )
    // After it was made: clients write to their sockets in the order in which they scheduled the end of the turn.
    this.#deadlines.watch(call)
  }

  #settle(call: Call, reply: unknown): void {
    if (call.isOver) return
    const { recorder } = this.#settings
    recorder?.latency.add(this.#clock.nowUs() - call.sentAtUs, 1)
    if (!(call instanceof CheckCall)) {
      this.#nodes?.answered(call)
      ;(call as PromisedCall<unknown>).succeed(reply)
      this.#ended()
      return
    }
    const checks = call.end() as readonly PendingCheck[]
    let errors: readonly (HeadgateError | null)[] | null
    try {
      errors = this.#remote.read(reply, checks)
    } catch (error) {
      if (call.node !== null) call.node.sample = checks[0]?.checkOf(0)
      this.#nodes?.failed(call, error)
      if (recorder !== null) recorder.failedCalls++
      this.#ended()
      this.#decideAllWithoutStore(checks, error)
      return
    }
    this.#nodes?.answered(call)
    this.#ended()
    for (let index = 0; index < checks.length; index++) {
      const check = checks[index] as PendingCheck
      const error = errors?.[index] ?? null
      // An error thrown while one is settled must not keep the others from being settled.
      try {
        if (error === null) this.#settleOne(check, call.askedAt)
        else this.#decideWithoutStore(check, error)
      } catch (fault) {
        check.fail(fault)
      }
    }
  }

  /** Settles a check that the store has decided, after the local share and the deny cache have noted the answer. */
  #settleOne(check: PendingCheck, askedAt: AskedAt | null): void {
    if (check.isSettled) return
    if (!check.isInternal && !check.isPeek) {
      if (!check.isLeased) this.#local.learn(check)
      if (check.charged < 0 && askedAt !== null) this.#denials?.learn(check, askedAt)
    }
    check.settle(this.source)
  }

  #fail(call: Call, error: unknown): void {
    if (call.isOver) return
    const { recorder } = this.#settings
    if (recorder !== null && call.sentAtUs > 0) recorder.failedCalls++
    this.#nodes?.failed(call, error)
    const checks = call instanceof CheckCall ? call.end() : null
    if (checks === null) (call as PromisedCall<unknown>).fail(error)
    this.#ended()
    if (checks !== null) this.#decideAllWithoutStore(checks, error)
  }

  #ended(): void {
    this.#inFlight--
    this.#deadlines.ended()
    if (this.#inFlight === 0) this.#onDrained?.()
  }

  #decideAllWithoutStore(checks: readonly PendingCheck[], error: unknown): void {
    for (const check of checks) {
      try {
        this.#decideWithoutStore(check, error)
      } catch (fault) {
        check.fail(fault)
      }
    }
  }

  /** The failure mode decides: with this process's share of the limits, or without looking at them. */
  #decideWithoutStore(check: PendingCheck, error: unknown): void {
    if (check.isSettled) return
    const { mode: storeMode } = this.#settings
    if (check.isInternal || storeMode === 'throw' || !isStoreFailure(error)) {
      check.fail(error)
      return
    }
    // What is only watched is never denied: its limits are counted in this process.
    const mode = check.plan.bindsNobody ? 'local' : (check.onStoreFailure ?? storeMode)
    if (mode === 'local') {
      this.#local.decide(check)
      if (wasNotSent(error)) this.#late.note(check)
    } else check.charged = mode === 'open' ? 0 : -1
    // Afterwards, because the log says what it decided by.
    this.#failed(error)
    if (!check.isPeek) this.#onEvent({ type: 'fallback', mode, allowed: check.charged >= 0 })
    check.settle(mode)
  }

  #failed(error: unknown): void {
    const code = isHeadgateError(error) ? error.code : 'unknown'
    this.#onEvent({ type: 'failure', code, message: error instanceof Error ? error.message : '' })
  }

  /** A check that waits for several calls, or for a lease, waits no longer than one call may take. */
  #watch(check: PendingCheck): void {
    this.#deadlines.watch({
      dueMs: 0,
      get isOver() {
        return check.isSettled
      },
      giveUp: () => this.#decideWithoutStore(check, this.#timeout()),
    })
  }

  #timeout(): HeadgateError {
    const { deadlineMs } = this.#settings
    return new HeadgateError(
      'ERR_HEADGATE_STORE_TIMEOUT',
      `${this.source}: no answer within ${deadlineMs} ms`,
    )
  }

  /** Where each call is paid for, at most so many are made in a second of the clock: beyond that the failure mode decides. */
  #capped(): HeadgateError | null {
    const { maxCallsPerSecond } = this.#settings
    if (maxCallsPerSecond === null) return null
    const second = Math.floor(this.#clock.nowUs() / SECOND_US)
    if (second !== this.#second) {
      this.#second = second
      this.#callsInSecond = 0
    }
    if (this.#callsInSecond++ < maxCallsPerSecond) return null
    return new HeadgateError(
      'ERR_HEADGATE_STORE_CAPPED',
      `redis: not called: maxCallsPerSecond (${maxCallsPerSecond}) is reached`,
    )
  }

  /**
   * Asks a node a check whose answer proves that it decides: it uses the same commands and slot as the sample, and writes,
   * because a node that is out of memory or has become a replica still answers reads. It charges a key of its own
   * that no limit has and that expires in seconds.
   */
  #probe(node: string, sample: Check | undefined): Promise<unknown> {
    const check = probeLike(sample)
    const make = async (): Promise<unknown> => {
      const reply = await this.#remote.ask([check], false, this.#remote.testTime?.() ?? '')
      const [error] = this.#remote.read(reply, [check]) ?? []
      if (error) throw error
      return reply
    }
    const call = new PromisedCall(node, undefined, 1, make, late => this.#fail(late, this.#timeout()))
    this.#inFlight++
    this.#sendNow(call)
    return call.reply
  }

  // Everything else.

  policiesChanged(): void {
    this.#remote.forgetPlans?.()
  }

  async refund(refunds: readonly Refund[]): Promise<readonly number[]> {
    return this.#apart(
      refunds,
      here => {
        this.#late.settled(here)
        return this.#local.refund(here)
      },
      there =>
        this.#changing(there, () =>
          this.#orNone(
            () => this.#refundInStore(there),
            () => there.map(() => 0),
          ),
        ),
    )
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly boolean[]> {
    return this.#apart(
      renewals,
      here => this.#local.renew(here),
      there =>
        this.#orNone(
          () => this.#call(there, group => this.#remote.renew(group.map(one => this.#ofRegion(one)))),
          () => there.map(() => false),
        ),
    )
  }

  async reset(checks: readonly Check[]): Promise<void> {
    this.#leases.forget(checks)
    const states = checks.map(check => ({ check }))
    await this.#changing(states, () =>
      this.#call(states, async group => {
        await this.#remote.reset(group.map(({ check }) => check))
        return group
      }),
    )
  }

  /** Rejects while the store cannot be asked: whoever credits tries again with the same id. */
  async credit(credit: Credit): Promise<Credited> {
    const credited = await this.#changing([credit], () =>
      this.#call([credit], async ([one]) => {
        if (this.#remote.credit === undefined) throw noCredits()
        return [await this.#remote.credit(this.#ofRegion(one as Credit))]
      }),
    )
    return credited[0] as Credited
  }

  #refundInStore(refunds: readonly Refund[]): Promise<readonly number[]> {
    return this.#call(refunds, group => this.#remote.refund(group.map(one => this.#ofRegion(one))))
  }

  /** Makes a call other than a check, after those that were made before, one for each slot. */
  #call<Item extends { readonly check: Check }, Result>(
    items: readonly Item[],
    make: (group: readonly Item[]) => Promise<readonly Result[]>,
  ): Promise<readonly Result[]> {
    this.#batches.flush()
    if (!this.#remote.isSplit) return this.#callOne(items, make)
    return inGroups(
      items,
      ({ check }) => slotSubject(check.subject),
      group => this.#callOne(group, make),
    )
  }

  #callOne<Item extends { readonly check: Check }, Result>(
    items: readonly Item[],
    make: (group: readonly Item[]) => Promise<readonly Result[]>,
  ): Promise<readonly Result[]> {
    const sample = items[0]?.check
    const node = sample === undefined ? '' : this.#remote.nodeOf(sample)
    const call = new PromisedCall(
      node,
      sample,
      items.length,
      () => make(items),
      late => this.#fail(late, this.#timeout()),
    )
    this.#send(call)
    return call.reply
  }

  /** Before and after what may end a denial early, the denials of its subjects are forgotten. */
  async #changing<Result>(
    items: readonly { readonly check: Check }[],
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (this.#denials === null) return work()
    const checks = items.map(({ check }) => check)
    this.#denials.forget(checks)
    try {
      return await work()
    } finally {
      this.#denials.forget(checks)
    }
  }

  /** If the store fails it is unknown whether it was done, and repeating it might give back twice. */
  async #orNone<Result>(
    work: () => Promise<readonly Result[]>,
    none: () => readonly Result[],
  ): Promise<readonly Result[]> {
    try {
      return await work()
    } catch (error) {
      if (this.#settings.mode === 'throw' || !isStoreFailure(error)) throw error
      this.#failed(error)
      return none()
    }
  }

  /** Passes what this process holds by itself to `here` and the rest to `there`, and keeps the order of the results. */
  async #apart<Item extends { readonly isLocal?: boolean }, Result>(
    items: readonly Item[],
    here: (items: readonly Item[]) => readonly Result[],
    there: (items: readonly Item[]) => MaybePromise<readonly Result[]>,
  ): Promise<readonly Result[]> {
    if (!items.some(isHere)) return there(items)
    const hereOnes = here(items.filter(isHere)).values()
    const elsewhere = items.filter(item => !isHere(item))
    const thereOnes = (elsewhere.length === 0 ? [] : await there(elsewhere)).values()
    return items.map(item => (isHere(item) ? hereOnes : thereOnes).next().value as Result)
  }

  #ofRegion<Item extends { readonly check: Check }>(item: Item): Item {
    if (this.#region === null) return item
    const { check } = item
    return { ...item, check: { ...check, limit: this.#region.limitOf(check.limit) } }
  }

  /** Which nodes are not asked, and how many requests were decided without them. */
  health(): StoreHealth {
    return {
      ...this.#tally.read(),
      liveProcesses: this.#fleet.live(),
      sharedAmong: this.#fleet.mayBeLive(),
      evictionPolicyUnsafe: this.#remote.isEvictionUnsafe?.() ?? false,
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAll()
    return this.#closing
  }

  /** What is in flight is awaited, what is held in advance goes back. */
  async #closeAll(): Promise<void> {
    this.#fleet.stop()
    this.#remote.firstConnection?.hurry()
    await this.#leases.close()
    await this.#splitter?.close()
    await this.#late.close()
    this.#batches.flush()
    if (this.#inFlight > 0) {
      await new Promise<void>(resolve => {
        this.#onDrained = resolve
      })
    }
    this.#nodes?.close()
    await this.#remote.close()
    this.#deadlines.stop()
  }
}

function noCredits(): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_INVALID_OPTION', 'credit: the store keeps no credits')
}

function isHere({ isLocal }: { readonly isLocal?: boolean }): boolean {
  return isLocal === true
}

const PROBE_NAME = 'probe'

function probeLike(sample: Check | undefined): PendingCheck {
  const limit = sample?.limit.algorithm.probe(sample.limit)
  const limits = limit === undefined ? [] : [new NamedLimit(PROBE_NAME, limit)]
  const plan = new Plan(NOBODY_LISTENS, NO_LABELS, limits)
  const more = {
    scope: sample?.scope ?? 'global',
    isPeek: false,
    others: [],
    units: null,
    onStoreFailure: null,
  }
  const check = new PendingCheck(plan, sample?.subject ?? '', 1, more)
  check.isInternal = true
  return check
}

/** Returns how many processes share the limits: counted, or as configured. In mode `throw` nobody needs to know. */
function fleetOf(
  remote: Remote,
  { processes, mode }: RemoteSettings,
  timers: Timers,
  onEvent: OnStoreEvent,
): Fleet {
  const given = (): number => processes ?? 1
  if (mode === 'throw') return { live: given, mayBeLive: given, stop() {} }
  const fleet = createFleet(
    () => remote.heartbeat(),
    HEARTBEAT_MS,
    timers,
    () => onEvent({ type: 'lost-writes' }),
  )
  return processes === null ? fleet : { ...fleet, live: given, mayBeLive: given }
}

function eventsOf(settings: RemoteSettings, log: OnStoreEvent, count: OnStoreEvent): OnStoreEvent {
  const observe = safely(settings.onEvent ?? (() => {}))
  const emit = inThisContext<StoreEvent>(event => {
    log(event)
    observe(event)
  })
  const { recorder } = settings
  return event => {
    count(event)
    recorder?.event(event)
    emit(event)
  }
}
