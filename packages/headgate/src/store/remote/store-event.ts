import type { FailureMode } from '../../check/check.js'
import type { BreakerState, Evidence } from './breaker.js'

/** What happens between this process and a store outside it. None of it names a subject. */
export type StoreEvent =
  /** A call failed; `code` is that of the error. */
  | { readonly type: 'failure'; readonly code: string; readonly message: string }
  /** The breaker of a node changed; `because` is set if calls of requests opened it. */
  | {
      readonly type: 'breaker'
      readonly node: string
      readonly state: BreakerState
      readonly because: Evidence | null
    }
  /** A request was decided without the store. */
  | { readonly type: 'fallback'; readonly mode: FailureMode; readonly allowed: boolean }
  /** The store has lost acknowledged writes: some callers may get their limits again. */
  | { readonly type: 'lost-writes' }
  /** Units of a limit were leased, to be spent in this process. */
  | { readonly type: 'lease'; readonly limit: string; readonly units: number }
  /** Units of a quota that were admitted while the store was not asked have been charged to it, or could not be. */
  | {
      readonly type: 'late-charge'
      readonly limit: string
      readonly units: number
      readonly dropped: boolean
    }

export type OnStoreEvent = (event: StoreEvent) => void

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
  readonly lostWrites: number
  /** Units of quotas that were admitted while the store was not asked, and were charged to it afterwards. */
  readonly lateUnits: number
  /** Units of quotas that were admitted while the store was not asked, and will never be charged. */
  readonly droppedUnits: number
  /** Whether Redis may evict limits when memory is short: its `maxmemory-policy` is not `noeviction`. */
  readonly evictionPolicyUnsafe: boolean
}

/** Counts events. */
export class StoreTally {
  private readonly breakers: Record<string, BreakerState> = {}
  private backendErrors = 0
  private fallbackAllowed = 0
  private fallbackDenied = 0
  private lostWrites = 0
  private lateUnits = 0
  private droppedUnits = 0

  count(event: StoreEvent): void {
    if (event.type === 'failure') this.backendErrors++
    else if (event.type === 'fallback') event.allowed ? this.fallbackAllowed++ : this.fallbackDenied++
    else if (event.type === 'lost-writes') this.lostWrites++
    else if (event.type === 'late-charge') this[event.dropped ? 'droppedUnits' : 'lateUnits'] += event.units
    else if (event.type === 'lease') return
    else if (event.state === 'closed') delete this.breakers[event.node]
    else this.breakers[event.node] = event.state
  }

  read(): Omit<StoreHealth, 'liveProcesses' | 'sharedAmong' | 'evictionPolicyUnsafe'> {
    const { breakers, backendErrors, fallbackAllowed, fallbackDenied, lostWrites, lateUnits, droppedUnits } =
      this
    return {
      breakers: { ...breakers },
      backendErrors,
      fallbackAllowed,
      fallbackDenied,
      lostWrites,
      lateUnits,
      droppedUnits,
    }
  }
}
