/**
 * A circuit breaker as a state machine: when a store keeps failing, stop asking it, and let one probe at a time find
 * out whether it is back.
 *
 *   closed ──5 failures in a row──► open ──delay over──► half-open ──probe succeeds──► closed
 *                                     ▲                      │
 *                                     └────probe fails───────┘
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
  /** A pass for a probe once the delay is over and no other is under way, else null. Half-opens the breaker. */
  enterProbe(nowMs: number): Pass | null
  /** The store answered. */
  succeeded(pass: Pass): void
  /** The store did not answer, or said that it cannot. */
  failed(pass: Pass, nowMs: number): void
  /** When the next probe is due, for an open breaker. */
  readonly probeAtMs: number | null
}

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

  function become(next: BreakerState): void {
    state = next
    generation++
    failuresInARow = 0
    onChange(next)
  }

  function open(nowMs: number): void {
    // Spread, so that a fleet that lost its store together does not come back to it together.
    probeAtMs = nowMs + options.probeAfterMs * (0.5 + random() / 2)
    become('open')
  }

  return {
    get state() {
      return state
    },
    get probeAtMs() {
      return state === 'open' ? probeAtMs : null
    },
    enter: () => (state === 'closed' ? { generation, probe: false } : null),
    enterProbe(nowMs) {
      if (state !== 'open' || nowMs < probeAtMs) return null
      become('half-open')
      return { generation, probe: true }
    },
    succeeded(pass) {
      if (pass.generation !== generation) return
      failuresInARow = 0
      if (state === 'half-open') become('closed')
    },
    failed(pass, nowMs) {
      if (pass.generation !== generation) return
      failuresInARow++
      if (state === 'half-open' || failuresInARow >= options.failures) open(nowMs)
    },
  }
}
