/**
 * Lets callers wait for their turn instead of being denied: calls (`acquire`), and requests that an adapter holds
 * (`wait`). Of those in this process that wait for the same budget only the first asks, when it was told to come back;
 * the others queue behind it. So a thousand waiting calls cost as many questions as one, and cheap requests do not
 * overtake an expensive one forever. However often it asks, a request is one decision.
 *
 * A permit that is released in this process wakes the first in line for it at once. One that comes free elsewhere is
 * found by asking now and then.
 */

import { BoundedMap } from '../check/bounded-map.js'
import { type DecisionSource, type Refund, stateOf } from '../check/check.js'
import type { Attempt, PendingCheck } from '../check/pending-check.js'
import type { NamedLimit } from '../check/plan.js'
import { Decision } from '../decision/decision.js'
import { unexpected } from '../errors/headgate-error.js'
import { ignoreRejection } from '../errors/ignore-rejection.js'
import { MAX_WAITING, type Wait } from '../policy/wait.js'
import type { Clock, Timers } from '../time/clock.js'

/** How long to wait, and what ends the wait. */
export interface AcquireOptions {
  /** Default 30,000. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** How a request may be held until there is room, for adapters; a rule's own `wait` comes first. */
export interface Hold {
  readonly wait?: Wait | null
  /** Aborted when the client leaves. Read when the request begins to wait. */
  readonly signal?: AbortSignal | undefined
}

/** A request that may wait. */
interface Held {
  /** Makes the check anew, because the numbers in force may have changed meanwhile. */
  resolve(): PendingCheck
  readonly attempt: Attempt
  readonly signal: AbortSignal | undefined
  /** What it was last asked with. */
  last: PendingCheck
}

export interface FairQueue {
  /**
   * Asks until it is admitted, in turn with others of the same budget. Resolves with a denial when the time is up or
   * would be before there is room; rejects with the signal's reason.
   */
  acquire(resolve: () => PendingCheck, wait: Wait, signal: AbortSignal | undefined): Promise<Decision>
  /**
   * Decides a request, at once if nobody waits for the same budget and there is room. Otherwise holds it as `acquire`
   * does a call, or denies it if as many wait as may. One whose client leaves is denied.
   */
  hold(first: PendingCheck, resolve: () => PendingCheck, wait: Wait, hold: Hold): Decision | Promise<Decision>
  /** Lets the first in line for each of these permits ask. */
  freed(permits: readonly Refund[]): void
  /** Denies all who wait; from then on nobody does. */
  close(): void
}

const DEFAULT_TIMEOUT_MS = 30_000
/** The longest a timer can wait. */
const MOST_TIMEOUT_MS = 2 ** 31 - 1
/** A permit may become free in another process without notice, so it is asked for this often. */
const PLACE_POLL_MS = 50
/**
 * Permits of a shared store are handed on within this process for so long; then one is left to whoever asks first, so
 * that a process that always has somebody waiting does not keep them from the others.
 */
const HANDED_ON_US = 1_000_000
/** Permits that came free while somebody was asking: how many are remembered. */
const MAX_FREED = 1_000

export interface FairQueueOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** Has a check decided, now or later. */
  decide(check: PendingCheck): PendingCheck
  /** Takes back what an attempt was charged that does not count: all of one that was allowed, shadow limits of another. */
  takeBack(decision: Decision): Promise<unknown>
  /** Whether other processes take permits of the same store. */
  readonly isShared: boolean
}

/** The callers that wait for one budget. */
interface Queue {
  /** The turn of the last of them. */
  last: Promise<void>
  /** How many there are. */
  length: number
  /** Since when permits have been handed on to them. */
  handedOnSinceUs: number
  /** The denial that the first of them has, until it asks again. */
  told: PendingCheck | null
}

/** The first of a queue, while it is its turn. */
interface Head {
  readonly queue: Queue
  /** The permits it stands in line for. */
  readonly states: Set<string>
  /** The permits it was woken for and has not asked for yet. */
  readonly offered: Set<string>
  /** Lets it ask; null while it is asking. */
  wake: (() => void) | null
}

export function createFairQueue({ clock, timers, decide, takeBack, isShared }: FairQueueOptions): FairQueue {
  const queues = new Map<string, Queue>()
  /** Those who wait for a permit, by its state, in the order in which they came. */
  const lines = new Map<string, Set<Head>>()
  /** The number of the last release of a state. */
  const lastFreed = new BoundedMap<number>(MAX_FREED)
  /** Ends the pauses of all who wait. */
  const pauses = new Set<() => void>()
  let waiting = 0
  let releases = 0
  let isClosed = false

  function acquire(
    resolve: () => PendingCheck,
    wait: Wait,
    signal: AbortSignal | undefined,
  ): Promise<Decision> {
    const held = heldOf(resolve(), resolve, signal)
    if (held.last.plan.bindsNobody) return ask(held).then(concluded)
    return waitInTurn(held, null, wait).then(concluded, error => {
      const { last } = held
      if (last.source !== null && !last.allowed) last.conclude()
      throw error
    })
  }

  function hold(
    first: PendingCheck,
    resolve: () => PendingCheck,
    wait: Wait,
    by: Hold,
  ): Decision | Promise<Decision> {
    if (waiting > 0 && queues.has(budgetOf(first))) {
      const held = heldOf(first, resolve, by.signal)
      return waitInTurn(held, null, wait).then(concluded, error => deniedIfLeft(held, error))
    }
    first.attempt = { sinceUs: first.plan.context.clock.nowUs(), hasWaited: false }
    const asked = decide(first).result()
    const go = (decision: Decision): Decision | Promise<Decision> => {
      if (isClosed || !couldPassWithin(decision, wait.atMostMs)) {
        Decision.checkOf(decision).strike()
        return concluded(decision)
      }
      const held = heldOf(first, resolve, by.signal)
      return waitInTurn(held, decision, wait).then(concluded, error => deniedIfLeft(held, error))
    }
    return asked instanceof Promise ? asked.then(go) : go(asked)
  }

  async function waitInTurn(held: Held, first: Decision | null, wait: Wait): Promise<Decision> {
    const { signal, attempt } = held
    const untilUs = clock.nowUs() + wait.atMostMs * 1_000
    signal?.throwIfAborted()
    const budget = budgetOf(held.last)
    const queue = queues.get(budget) ?? newQueue(clock.nowUs())
    const before = queue.last
    if (isClosed || waiting >= MAX_WAITING || queue.length >= wait.queue)
      return first ?? (isClosed || before === ALREADY ? ask(held) : turnAway(held, queue))
    let leave = (): void => {}
    const turn = new Promise<void>(resolve => {
      leave = resolve
    })
    queue.last = turn
    queue.length++
    queues.set(budget, queue)
    waiting++
    attempt.hasWaited = first !== null || before !== ALREADY
    try {
      if (before === ALREADY) return await askInTurn(held, first, queue, untilUs)
      if (first !== null) forget(first)
      if (await within(before, untilUs, signal)) return await askInTurn(held, null, queue, untilUs)
      return isClosed ? denied(held) : await turnAway(held, queue)
    } finally {
      waiting--
      queue.length--
      // Those behind still wait for those in front.
      void before.then(() => {
        leave()
        if (queue.last === turn) queues.delete(budget)
      })
    }
  }

  async function ask(held: Held): Promise<Decision> {
    const check = unasked(held)
    held.last = check
    check.attempt = held.attempt
    return decide(check).result()
  }

  /**
   * Denies a request whose turn it is not, without asking for it: what comes free is for those before it. Its numbers are
   * those that the first in line was told, if it asks the same, and else those of a look.
   */
  async function turnAway(held: Held, { told }: Queue): Promise<Decision> {
    const asked = unasked(held)
    if (asked.plan.asksNothing) return ask(held)
    const seen = told !== null && asksTheSame(told, asked) ? told : await look(asked)
    const check = again(held, asked)
    // Without limits to look at, nobody takes anything from anybody.
    if (seen.allowed && !seen.isUnlooked) check.deny()
    else {
      check.copyFrom(seen, check.atUs - seen.atUs)
      check.settle(seen.source as DecisionSource)
    }
    return check.decision
  }

  async function look(check: PendingCheck): Promise<PendingCheck> {
    return Decision.checkOf(await decide(check.asPeek()).result())
  }

  /** The same question, to be settled here. */
  function again({ attempt }: Held, asked: PendingCheck): PendingCheck {
    const check = asked.again()
    check.atUs = clock.nowUs()
    check.attempt = attempt
    check.request = asked.request
    return check
  }

  /** Of a request that is asked again, nothing may stay behind. */
  function forget(decision: Decision): void {
    void decision.release()
    ignoreRejection(takeBack(decision))
  }

  /** The denial of a request that cannot wait any longer, and may never have been asked about. */
  function denied(held: Held): Decision {
    const { last } = held
    if (last.source !== null && !last.allowed) return last.decision
    const check = again(held, last)
    check.deny()
    return check.decision
  }

  function deniedIfLeft(held: Held, error: unknown): Decision {
    if (!held.signal?.aborted) throw error
    return concluded(denied(held))
  }

  async function askInTurn(
    held: Held,
    first: Decision | null,
    queue: Queue,
    untilUs: number,
  ): Promise<Decision> {
    const { signal, attempt } = held
    const head: Head = { queue, states: new Set(), offered: new Set(), wake: null }
    try {
      for (let known = first; ; known = null) {
        const before = releases
        queue.told = null
        const decision: Decision = known ?? (await ask(held))
        if (signal?.aborted) {
          if (decision.allowed) forget(decision)
          throw signal.reason
        }
        if (decision.allowed) head.offered.clear()
        if (decision.allowed || decision.retryAfterMs === null || isClosed) return decision
        const denial = Decision.checkOf(decision)
        queue.told = denial
        const full = denial.fullPermits()
        // What is full was taken by somebody else; of the rest, the next in line can make use.
        for (const state of full) head.offered.delete(state)
        handOn(head)
        const nowUs = clock.nowUs()
        if (denial.deniedBy?.renew === undefined) {
          if (nowUs + decision.retryAfterMs * 1_000 > untilUs) return decision
          attempt.hasWaited = true
          await pause(decision.retryAfterMs, signal)
        } else if (nowUs >= untilUs) {
          return decision
        } else if (!full.some(state => (lastFreed.get(state) ?? 0) > before)) {
          attempt.hasWaited = true
          enterLines(head, full)
          await within(woken(head), Math.min(nowUs + PLACE_POLL_MS * 1_000, untilUs), signal)
          head.wake = null
        }
        if (isClosed) return decision
        forget(decision)
      }
    } finally {
      head.wake = null
      leaveLines(head)
      handOn(head)
    }
  }

  /** Keeps its permit in those lines in which it stands already. */
  function enterLines(head: Head, states: readonly string[]): void {
    for (const state of states) {
      head.states.add(state)
      const line = lines.get(state)
      if (line === undefined) lines.set(state, new Set([head]))
      else line.add(head)
    }
  }

  function leaveLines(head: Head): void {
    for (const state of head.states) {
      const line = lines.get(state)
      line?.delete(head)
      if (line?.size === 0) lines.delete(state)
    }
  }

  function woken(head: Head): Promise<void> {
    return new Promise(resolve => {
      head.wake = resolve
    })
  }

  /** Offers what it was offered to the next in line. */
  function handOn(head: Head): void {
    for (const state of head.offered) offer(state, firstInLine(state))
    head.offered.clear()
  }

  /** Those who are asking have no need to be told. */
  function firstInLine(state: string): Head | undefined {
    for (const head of lines.get(state) ?? []) if (head.wake !== null) return head
    return undefined
  }

  function offer(state: string, head: Head | undefined): void {
    head?.offered.add(state)
    head?.wake?.()
    if (head !== undefined) head.wake = null
  }

  function freed(permits: readonly Refund[]): void {
    if (waiting === 0) return
    for (const { check } of permits) {
      const state = stateOf(check)
      lastFreed.set(state, ++releases)
      const first = firstInLine(state)
      if (first === undefined) continue
      const nowUs = clock.nowUs()
      if (!isShared || nowUs - first.queue.handedOnSinceUs < HANDED_ON_US) offer(state, first)
      else first.queue.handedOnSinceUs = nowUs
    }
  }

  /** Whether `turn` ends before the time is up. */
  async function within(
    turn: Promise<void>,
    untilUs: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const leftMs = Math.max(0, Math.ceil((untilUs - clock.nowUs()) / 1_000))
    let cancel = (): void => {}
    const late = new Promise<false>((resolve, reject) => {
      const end = () => resolve(false)
      const stop = timers.after(leftMs, end)
      const abort = () => reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      pauses.add(end)
      cancel = () => {
        stop()
        signal?.removeEventListener('abort', abort)
        pauses.delete(end)
      }
    })
    return Promise.race([turn.then(() => true), late]).finally(cancel)
  }

  async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    await within(new Promise(() => {}), clock.nowUs() + ms * 1_000, signal)
  }

  function close(): void {
    isClosed = true
    for (const end of pauses) end()
  }

  return { acquire, hold, freed, close }
}

function heldOf(last: PendingCheck, resolve: () => PendingCheck, signal: AbortSignal | undefined): Held {
  const attempt = last.attempt ?? { sinceUs: last.plan.context.clock.nowUs(), hasWaited: false }
  return { resolve, attempt, signal, last }
}

/** What it is asked with the next time. */
function unasked({ last, resolve }: Held): PendingCheck {
  return last.isSettled ? resolve() : last
}

/** Whether two checks of one budget are told the same. */
function asksTheSame(one: PendingCheck, other: PendingCheck): boolean {
  if (one.plan !== other.plan) return false
  return one.plan.limits.every((_, index) => one.unitsOf(index) === other.unitsOf(index))
}

function newQueue(nowUs: number): Queue {
  return { last: ALREADY, length: 0, handedOnSinceUs: nowUs, told: null }
}

/** Whether it is worth waiting: a permit may come free at any time. */
function couldPassWithin(decision: Decision, ms: number): boolean {
  const { allowed, retryAfterMs } = decision
  const { deniedBy } = Decision.checkOf(decision)
  if (allowed || retryAfterMs === null || deniedBy?.strikes !== undefined) return false
  return retryAfterMs <= ms || deniedBy?.renew !== undefined
}

/** The last attempt of a request is what is counted and told. Who waits, or may not for want of room, is not struck. */
function concluded(decision: Decision): Decision {
  Decision.checkOf(decision).conclude()
  return decision
}

/** Stands for a turn that is over: nobody is in front. */
const ALREADY: Promise<void> = Promise.resolve()

/** Validates the time of `acquire`. */
export function parseTimeoutMs(timeoutMs: number = DEFAULT_TIMEOUT_MS): number {
  if (typeof timeoutMs === 'number' && timeoutMs >= 0) return Math.min(timeoutMs, MOST_TIMEOUT_MS)
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'timeoutMs', 'a number of milliseconds from 0', timeoutMs)
}

/** Validates the signal of `acquire`: any that behaves like one, for it may come from elsewhere. */
export function parseSignal(signal: AbortSignal | null | undefined): AbortSignal | undefined {
  if (signal === undefined || signal === null) return undefined
  if (typeof signal.addEventListener === 'function' && typeof signal.throwIfAborted === 'function')
    return signal
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'signal', 'an AbortSignal', signal)
}

/** Returns a name for the budget that a check asks, whatever it costs: those that wait for the same one queue. */
function budgetOf(check: PendingCheck): string {
  const { limits, shadowFrom } = check.plan
  const states: (string | number)[] = []
  for (let index = 0; index < shadowFrom; index++)
    states.push((limits[index] as NamedLimit).number, check.subjectOf(index), check.scopeOf(index))
  return JSON.stringify(states)
}
