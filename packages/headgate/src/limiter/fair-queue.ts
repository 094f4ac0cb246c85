/**
 * Lets callers wait for their turn instead of being denied. Of those in this process that wait for the same budget
 * only the first asks, when it was told to come back; the others queue behind it. So a thousand waiting calls cost
 * as many questions as one, and cheap requests do not overtake an expensive one forever.
 *
 * A permit that is released in this process wakes the first in line for it at once. One that comes free elsewhere is
 * found by asking now and then.
 */

import { BoundedMap } from '../check/bounded-map.js'
import { type Refund, stateOf } from '../check/check.js'
import { Decision } from '../decision/decision.js'
import { unexpected } from '../errors/headgate-error.js'
import { ignoreRejection } from '../errors/ignore-rejection.js'
import type { SubjectInput } from '../subject/subject.js'
import type { Clock, Timers } from '../time/clock.js'

/** How long to wait, and what ends the wait. */
export interface AcquireOptions {
  /** Default 30,000. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface FairQueue {
  /**
   * Asks until it is admitted, in turn with others of the same `budget`. Resolves with the last denial when the
   * time is up or would be before there is room; rejects with the signal's reason.
   */
  wait(budget: string, ask: () => Promise<Decision>, options?: AcquireOptions): Promise<Decision>
  /** Lets the first in line for each of these permits ask. */
  freed(permits: readonly Refund[]): void
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
/** How many may wait at once; one more is answered without a wait. */
const MAX_WAITING = 10_000

export interface FairQueueOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** Refunds a decision that nobody awaits any more. */
  refund(decision: Decision): Promise<unknown>
  /** Whether other processes take permits of the same store. */
  readonly isShared: boolean
}

/** The callers that wait for one budget. */
interface Queue {
  /** The turn of the last of them. */
  last: Promise<void>
  /** Since when permits have been handed on to them. */
  handedOnSinceUs: number
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

export function createFairQueue({ clock, timers, refund, isShared }: FairQueueOptions): FairQueue {
  const queues = new Map<string, Queue>()
  /** Those who wait for a permit, by its state, in the order in which they came. */
  const lines = new Map<string, Set<Head>>()
  /** The number of the last release of a state. */
  const lastFreed = new BoundedMap<number>(MAX_FREED)
  let waiting = 0
  let releases = 0

  async function wait(
    budget: string,
    ask: () => Promise<Decision>,
    options: AcquireOptions = {},
  ): Promise<Decision> {
    const { signal } = options
    const timeoutMs = parseTimeoutMs(options.timeoutMs)
    const untilUs = clock.nowUs() + timeoutMs * 1_000
    signal?.throwIfAborted()
    if (waiting >= MAX_WAITING) return ask()
    const queue = queues.get(budget) ?? { last: ALREADY, handedOnSinceUs: clock.nowUs() }
    const before = queue.last
    let leave = (): void => {}
    const turn = new Promise<void>(resolve => {
      leave = resolve
    })
    queue.last = turn
    queues.set(budget, queue)
    waiting++
    try {
      if (before !== ALREADY && !(await within(before, untilUs, signal))) return await ask()
      return await askInTurn(ask, queue, untilUs, signal)
    } finally {
      waiting--
      // Those behind still wait for those in front.
      void before.then(() => {
        leave()
        if (queue.last === turn) queues.delete(budget)
      })
    }
  }

  async function askInTurn(
    ask: () => Promise<Decision>,
    queue: Queue,
    untilUs: number,
    signal: AbortSignal | undefined,
  ): Promise<Decision> {
    const head: Head = { queue, states: new Set(), offered: new Set(), wake: null }
    try {
      for (;;) {
        const before = releases
        const decision = await ask()
        if (signal?.aborted) {
          void decision.release()
          if (decision.allowed) ignoreRejection(refund(decision))
          throw signal.reason
        }
        if (decision.allowed) head.offered.clear()
        if (decision.allowed || decision.retryAfterMs === null) return decision
        const full = Decision.checkOf(decision).fullPermits()
        // What is full was taken by somebody else; of the rest, the next in line can make use.
        for (const state of full) head.offered.delete(state)
        handOn(head)
        const nowUs = clock.nowUs()
        if (decision.binding?.quota.unit !== 'concurrent-requests') {
          if (nowUs + decision.retryAfterMs * 1_000 > untilUs) return decision
          await pause(decision.retryAfterMs, signal)
        } else if (nowUs >= untilUs) {
          return decision
        } else if (!full.some(state => (lastFreed.get(state) ?? 0) > before)) {
          enterLines(head, full)
          await within(woken(head), Math.min(nowUs + PLACE_POLL_MS * 1_000, untilUs), signal)
          head.wake = null
        }
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
      const stop = timers.after(leftMs, () => resolve(false))
      const abort = () => reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      cancel = () => {
        stop()
        signal?.removeEventListener('abort', abort)
      }
    })
    return Promise.race([turn.then(() => true), late]).finally(cancel)
  }

  async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    await within(new Promise(() => {}), clock.nowUs() + ms * 1_000, signal)
  }

  return { wait, freed }
}

/** Stands for a turn that is over: nobody is in front. */
const ALREADY: Promise<void> = Promise.resolve()

function parseTimeoutMs(timeoutMs: number = DEFAULT_TIMEOUT_MS): number {
  if (typeof timeoutMs === 'number' && timeoutMs >= 0) return Math.min(timeoutMs, MOST_TIMEOUT_MS)
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'timeoutMs', 'a number of milliseconds from 0', timeoutMs)
}

/** Returns a name for the budget that is asked: callers that wait for the same one queue. */
export function budgetOf(
  subject: SubjectInput,
  { policy, tier, scope }: { policy?: unknown; tier?: unknown; scope?: unknown },
): string {
  const name = typeof subject === 'string' ? subject : `${subject?.type}:${subject?.id}`
  return JSON.stringify([policy ?? null, tier ?? null, scope ?? null, name])
}
