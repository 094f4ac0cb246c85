import type { BreakerState } from './breaker.js'
import type { GuardEvent } from './guard-event.js'

/** Counts since the store was made. */
export interface StoreHealth {
  /** The breakers that are not closed, by node. */
  readonly breakers: Readonly<Record<string, BreakerState>>
  /** `rate_limit_backend_errors_total`. */
  readonly backendErrors: number
  readonly fallbackAllowed: number
  readonly fallbackDenied: number
  readonly liveProcesses: number
  /** Among how many processes each limit is divided while the store cannot be asked: the most counted lately. */
  readonly sharedAmong: number
  /**
   * How often a node was seen to have forgotten what it had acknowledged, after a failover or restart that lost
   * writes.
   */
  readonly stateRewinds: number
  /** Whether Redis may evict limits when memory is short: its `maxmemory-policy` is not `noeviction`. */
  readonly evictionPolicyUnsafe: boolean
}

/** Counts events. */
export function createTally() {
  const breakers: Record<string, BreakerState> = {}
  let backendErrors = 0
  let fallbackAllowed = 0
  let fallbackDenied = 0
  let stateRewinds = 0
  return {
    count(event: GuardEvent): void {
      if (event.type === 'failure') backendErrors++
      else if (event.type === 'fallback') event.allowed ? fallbackAllowed++ : fallbackDenied++
      else if (event.type === 'rewind') stateRewinds++
      else if (event.type === 'lease') return
      else if (event.state === 'closed') delete breakers[event.node]
      else breakers[event.node] = event.state
    },
    read: () => ({ breakers: { ...breakers }, backendErrors, fallbackAllowed, fallbackDenied, stateRewinds }),
  }
}
