/**
 * Lets callers wait for their turn instead of being denied. Of those in this process that wait for the same budget
 * only the first asks, when it was told to come back; the others queue behind it. So a thousand waiting calls cost
 * as many questions as one, and cheap requests do not overtake an expensive one forever.
 */
import type { Decision } from '../decision/decision.js'
import { unexpected } from '../errors/headgate-error.js'
import { letFail } from '../errors/let-fail.js'
import type { SubjectInput } from '../subject/subject.js'
import type { Clock, Timers } from '../time/clock.js'

/** How long to wait, and what ends the wait. */
export interface Patience {
  /** Default 30,000. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface Turns {
  /**
   * Asks until it is admitted, in turn with others of the same `budget`. Resolves with the last denial when the
   * time is up or would be before there is room; rejects with the signal's reason.
   */
  wait(budget: string, ask: () => Promise<Decision>, patience?: Patience): Promise<Decision>
}

const DEFAULT_TIMEOUT_MS = 30_000
/** The longest a timer can wait. */
const MOST_TIMEOUT_MS = 2 ** 31 - 1
/** A place may become free at any time without notice, so it is polled at most this often. */
const PLACE_POLL_MS = 100
/** How many may wait at once; one more is answered without a wait. */
const MAX_WAITING = 10_000

export interface TurnsOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** Refunds a decision that nobody awaits any more. */
  refund(decision: Decision): Promise<unknown>
}

export function createTurns({ clock, timers, refund }: TurnsOptions): Turns {
  /** The turn of the last caller that waits for a budget. */
  const lastTurns = new Map<string, Promise<void>>()
  let waiting = 0

  async function wait(
    budget: string,
    ask: () => Promise<Decision>,
    patience: Patience = {},
  ): Promise<Decision> {
    const { signal } = patience
    const timeoutMs = parseTimeoutMs(patience.timeoutMs)
    const untilUs = clock.nowUs() + timeoutMs * 1_000
    signal?.throwIfAborted()
    if (waiting >= MAX_WAITING) return ask()
    const before = lastTurns.get(budget)
    let leave = (): void => {}
    const turn = new Promise<void>(resolve => {
      leave = resolve
    })
    lastTurns.set(budget, turn)
    waiting++
    try {
      if (before !== undefined && !(await within(before, untilUs, signal))) return await ask()
      return await askInTurn(ask, untilUs, signal)
    } finally {
      waiting--
      // Those behind still wait for those in front.
      void (before ?? Promise.resolve()).then(() => {
        leave()
        if (lastTurns.get(budget) === turn) lastTurns.delete(budget)
      })
    }
  }

  async function askInTurn(
    ask: () => Promise<Decision>,
    untilUs: number,
    signal: AbortSignal | undefined,
  ): Promise<Decision> {
    for (;;) {
      const decision = await ask()
      if (signal?.aborted) {
        void decision.release()
        if (decision.allowed) letFail(refund(decision))
        throw signal.reason
      }
      if (decision.allowed || decision.retryAfterMs === null) return decision
      const isForPlace = decision.binding?.quota.unit === 'concurrent-requests'
      const pauseMs = isForPlace ? Math.min(PLACE_POLL_MS, decision.retryAfterMs) : decision.retryAfterMs
      if (clock.nowUs() + pauseMs * 1_000 > untilUs) return decision
      await pause(pauseMs, signal)
    }
  }

  /** Whether `turn` ends before the time is up. */
  async function within(
    turn: Promise<void>,
    untilUs: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const leftMs = Math.max(0, Math.ceil((untilUs - clock.nowUs()) / 1_000))
    let callOff = (): void => {}
    const late = new Promise<false>((resolve, reject) => {
      const stop = timers.after(leftMs, () => resolve(false))
      const abort = () => reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      callOff = () => {
        stop()
        signal?.removeEventListener('abort', abort)
      }
    })
    return Promise.race([turn.then(() => true), late]).finally(callOff)
  }

  async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    await within(new Promise(() => {}), clock.nowUs() + ms * 1_000, signal)
  }

  return { wait }
}

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
