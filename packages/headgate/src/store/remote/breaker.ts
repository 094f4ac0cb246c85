/**
 * A circuit breaker as a state machine: when a node keeps failing, stop asking it, and let one probe at a time find out
 * whether it is back.
 *
 *   closed ──5 calls in a row failed──► open ──delay over──► half-open ──probe succeeds──► closed
 *                                        ▲                       │
 *                                        └─────probe fails───────┘
 *
 * A node that says it cannot has said so. One that says nothing may only have paused, and a busy process makes five
 * calls during any pause: so silence opens the breaker only when it has also lasted for `silenceMs`. Until then the node
 * is under suspicion, and one call at a time finds out. A call that got no answer while others that were made at the
 * same time did is no evidence at all: the node is busy with what we sent it.
 *
 * A node whose answers come about as late as they may would open and close it all the time. So when it opened again
 * within ten seconds of closing, only a probe that was answered quickly closes it before these are over.
 *
 * Every call carries the generation it began in. An outcome of an older generation is news about the past: a late
 * failure does not keep the breaker open longer, and a late success does not close it.
 *
 * Invariant: at most one probe is in flight, and only a probe of the present generation closes the breaker.
 */

export interface BreakerOptions {
  /** Failed calls in a row that open it. */
  readonly failures: number
  /** How long a node must also have been silent. */
  readonly silenceMs: number
  /** The longest delay before a probe; each is spread over the upper half of it. */
  readonly probeAfterMs: number
  /** An answer to a probe within this time shows that the node is healthy, not just barely in time. */
  readonly quickMs: number
}

export type BreakerState = 'closed' | 'open' | 'half-open'

/** A permit to call the node, to be passed back with the outcome. */
export interface Pass {
  readonly generation: number
  readonly probe: boolean
  readonly enteredAtMs: number
  /** Calls that had been answered when it was issued. */
  readonly answersBefore: number
}

/** How a call failed: the node rejected, or was silent. */
export type Failure = 'rejected' | 'silent'

/** Why a breaker opened: how many calls in a row failed, within how long, and how the last one did. */
export interface Evidence {
  readonly calls: number
  readonly withinMs: number
  readonly failure: Failure
}

export interface Breaker {
  readonly state: BreakerState
  /** Returns a pass for an ordinary call, or null while the node must not be asked. */
  enter(nowMs: number): Pass | null
  /**
   * Returns a pass for a probe once the delay is over and no other is in flight, else null. Half-opens the breaker.
   * `early` skips the delay, for example for a new connection.
   */
  enterProbe(nowMs: number, early?: boolean): Pass | null
  /** The node answered an ordinary call. */
  succeeded(pass: Pass): void
  /** The node answered a probe within `tookMs`. */
  probeSucceeded(pass: Pass, nowMs: number, tookMs: number): void
  /** The call failed. */
  failed(pass: Pass, nowMs: number, failure: Failure): void
  /** The call was not made after all: nothing is known about the node. */
  withdrawn(pass: Pass): void
  /** When the next probe is due, for an open breaker. */
  readonly probeAtMs: number | null
}

/** How long a breaker that closed is watched for opening again. */
const CALM_MS = 10_000

/**
 * `random` returns numbers from 0 to 1; `onChange` is called after every change of state, with the reason if it
 * opened.
 */
export function createBreaker(
  options: BreakerOptions,
  random: () => number,
  onChange: (state: BreakerState, because: Evidence | null) => void = () => {},
): Breaker {
  let state: BreakerState = 'closed'
  let generation = 0
  let failuresInARow = 0
  /** When the first call of the row was made. */
  let failingSinceMs = 0
  let lastFailedAtMs = 0
  let answers = 0
  /** The one call let through to a suspect node. */
  let trial: Pass | null = null
  let probeAtMs = 0
  let closedAtMs = Number.NEGATIVE_INFINITY
  let isRelapse = false

  function become(next: BreakerState, because: Evidence | null = null): void {
    state = next
    generation++
    failuresInARow = 0
    trial = null
    onChange(next, because)
  }

  function open(nowMs: number, because: Evidence | null): void {
    // Spread, so that a fleet that lost its store together does not come back to it together.
    probeAtMs = nowMs + options.probeAfterMs * (0.5 + random() / 2)
    if (state === 'closed') isRelapse = nowMs - closedAtMs < CALM_MS
    become('open', because)
  }

  function close(nowMs: number): void {
    closedAtMs = nowMs
    become('closed')
  }

  function passAt(nowMs: number, probe: boolean): Pass {
    return { generation, probe, enteredAtMs: nowMs, answersBefore: answers }
  }

  function countFailure(pass: Pass, nowMs: number): void {
    if (failuresInARow === 0) failingSinceMs = pass.enteredAtMs
    failuresInARow++
    lastFailedAtMs = nowMs
  }

  /** An old suspicion keeps nobody out: the next failure settles it. */
  function isSuspect(nowMs: number): boolean {
    return failuresInARow >= options.failures && nowMs - lastFailedAtMs < options.silenceMs
  }

  return {
    get state() {
      return state
    },
    get probeAtMs() {
      return state === 'open' ? probeAtMs : null
    },
    enter(nowMs) {
      if (state !== 'closed') return null
      const pass = passAt(nowMs, false)
      if (!isSuspect(nowMs)) return pass
      if (trial !== null) return null
      trial = pass
      return pass
    },
    enterProbe(nowMs, early = false) {
      if (state !== 'open' || (nowMs < probeAtMs && !early)) return null
      become('half-open')
      return passAt(nowMs, true)
    },
    succeeded(pass) {
      if (pass.generation !== generation) return
      answers++
      failuresInARow = 0
      trial = null
    },
    probeSucceeded(pass, nowMs, tookMs) {
      if (pass.generation !== generation) return
      if (isRelapse && tookMs > options.quickMs && nowMs - closedAtMs < CALM_MS) open(nowMs, null)
      else close(nowMs)
    },
    failed(pass, nowMs, failure) {
      if (pass.generation !== generation) return
      if (pass === trial) trial = null
      if (state === 'half-open') {
        open(nowMs, null)
        return
      }
      if (failure === 'silent' && pass.answersBefore !== answers) return
      countFailure(pass, nowMs)
      const withinMs = nowMs - failingSinceMs
      const isEvident = failure === 'rejected' || withinMs >= options.silenceMs
      if (failuresInARow >= options.failures && isEvident) {
        open(nowMs, { calls: failuresInARow, withinMs, failure })
      }
    },
    withdrawn(pass) {
      if (pass === trial) trial = null
    },
  }
}
