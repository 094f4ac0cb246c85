/**
 * A circuit breaker as a state machine: when a store keeps failing, stop asking it, and let one probe at a time find
 * out whether it is back.
 *
 *   closed ──5 failures in a row──► open ──delay over──► half-open ──probe succeeds──► closed
 *                                     ▲                      │
 *                                     └────probe fails───────┘
 *
 * A store whose answers come about as late as they may would open and close it all the time. So when it opened again
 * within ten seconds of closing, only a probe that was answered quickly closes it before these are over.
 *
 * Every call carries the generation it began in. An outcome of an older generation is news about the past: a late
 * failure does not keep the breaker open longer, and a late success does not close it.
 *
 * Invariant: at most one probe is under way, and only a probe of the present generation closes the breaker.
 */

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failures: number
  /** The longest delay before a probe; each is spread over the upper half of it. */
  readonly probeAfterMs: number
  /** An answer to a probe that took no longer shows that the store is well, not just that it can be in time. */
  readonly quickMs: number
}

export type BreakerState = 'closed' | 'open' | 'half-open'

/** Pass to call the store with, to be handed back with the outcome. */
export interface Pass {
  readonly generation: number
  readonly probe: boolean
}

export interface Breaker {
  readonly state: BreakerState
  /** A pass for an ordinary call, or null while the store is not to be asked. */
  enter(): Pass | null
  /**
   * A pass for a probe once the delay is over and no other is under way, else null. Half-opens the breaker. `early`
   * for a reason to try before that, such as a new connection.
   */
  enterProbe(nowMs: number, early?: boolean): Pass | null
  /** The store answered an ordinary call. */
  succeeded(pass: Pass): void
  /** The store answered a probe, after so long. */
  probeSucceeded(pass: Pass, nowMs: number, tookMs: number): void
  /** The store did not answer, or said that it cannot. */
  failed(pass: Pass, nowMs: number): void
  /** When the next probe is due, for an open breaker. */
  readonly probeAtMs: number | null
}

/** How long a breaker that closed is watched for opening again. */
const CALM_MS = 10_000

/** `random` gives numbers from 0 to 1; `onChange` is told every change of state, after it happened. */
export function createBreaker(
  options: BreakerOptions,
  random: () => number,
  onChange: (state: BreakerState) => void = () => {},
): Breaker {
  let state: BreakerState = 'closed'
  let generation = 0
  let failuresInARow = 0
  let probeAtMs = 0
  let closedAtMs = Number.NEGATIVE_INFINITY
  let isRelapse = false

  function become(next: BreakerState): void {
    state = next
    generation++
    failuresInARow = 0
    onChange(next)
  }

  function open(nowMs: number): void {
    // Spread, so that a fleet that lost its store together does not come back to it together.
    probeAtMs = nowMs + options.probeAfterMs * (0.5 + random() / 2)
    if (state === 'closed') isRelapse = nowMs - closedAtMs < CALM_MS
    become('open')
  }

  function close(nowMs: number): void {
    closedAtMs = nowMs
    become('closed')
  }

  return {
    get state() {
      return state
    },
    get probeAtMs() {
      return state === 'open' ? probeAtMs : null
    },
    enter: () => (state === 'closed' ? { generation, probe: false } : null),
    enterProbe(nowMs, early = false) {
      if (state !== 'open' || (nowMs < probeAtMs && !early)) return null
      become('half-open')
      return { generation, probe: true }
    },
    succeeded(pass) {
      if (pass.generation === generation) failuresInARow = 0
    },
    probeSucceeded(pass, nowMs, tookMs) {
      if (pass.generation !== generation) return
      if (isRelapse && tookMs > options.quickMs && nowMs - closedAtMs < CALM_MS) open(nowMs)
      else close(nowMs)
    },
    failed(pass, nowMs) {
      if (pass.generation !== generation) return
      failuresInARow++
      if (state === 'half-open' || failuresInARow >= options.failures) open(nowMs)
    },
  }
}
