import type { BreakerState } from '../../store/remote/breaker.js'
import type { StoreEvent } from '../../store/remote/store-event.js'
import { Latencies, type LatencyCounts } from './latencies.js'

/** Why a store could not decide, as metric labels. */
export const FAILURE_KINDS = [
  'timeout',
  'unavailable',
  'connection',
  'reply',
  'key',
  'capped',
  'other',
] as const
export type FailureKind = (typeof FAILURE_KINDS)[number]

const KINDS: Readonly<Record<string, FailureKind>> = {
  ERR_HEADGATE_STORE_TIMEOUT: 'timeout',
  ERR_HEADGATE_STORE_UNAVAILABLE: 'unavailable',
  ERR_HEADGATE_STORE: 'connection',
  ERR_HEADGATE_STORE_REPLY: 'reply',
  ERR_HEADGATE_STORE_KEY: 'key',
  ERR_HEADGATE_STORE_CAPPED: 'capped',
}

/** Counts of the calls to a store outside this process, since the process began. */
export interface StoreCounts {
  readonly calls: number
  /** Checks in those calls. */
  readonly checks: number
  /** Calls without an answer, or with an error. */
  readonly failedCalls: number
  readonly latency: LatencyCounts
  /** Questions the store could not decide, by reason. */
  readonly failures: Readonly<Record<FailureKind, number>>
  readonly fallbackAllowed: number
  readonly fallbackDenied: number
  /** Denials from the deny cache, without a call. */
  readonly denyCache: number
  /** Decisions from units taken in advance. */
  readonly leased: number
  readonly leases: number
  readonly leaseUnits: number
  readonly lostWrites: number
  /** Units of quotas admitted without the store, and charged to it afterwards. */
  readonly lateUnits: number
  /** Those that will never be charged. */
  readonly droppedUnits: number
  /** The state of nodes that have been unreachable, and since when. */
  readonly breakers: readonly NodeState[]
  /** The most calls this process makes in a second (`maxCallsPerSecond`); null if unbounded. */
  readonly callCapPerSecond: number | null
}

export interface NodeState {
  /** Empty if there is only one. */
  readonly node: string
  readonly state: BreakerState
  /** Unix time in milliseconds. */
  readonly sinceMs: number
}

/** Counts the events of the guards, and the calls they make. */
export class StoreRecorder {
  calls = 0
  checks = 0
  failedCalls = 0
  readonly latency = new Latencies()
  denyCache = 0
  leased = 0
  callCapPerSecond: number | null = null
  private readonly failures = Object.fromEntries(FAILURE_KINDS.map(kind => [kind, 0])) as Record<
    FailureKind,
    number
  >
  private fallbackAllowed = 0
  private fallbackDenied = 0
  private leases = 0
  private leaseUnits = 0
  private lostWrites = 0
  private lateUnits = 0
  private droppedUnits = 0
  /** By node. */
  private readonly breakers = new Map<string, NodeState>()

  constructor(private readonly unixMs: () => number) {}

  event(event: StoreEvent): void {
    if (event.type === 'failure') this.failures[KINDS[event.code] ?? 'other']++
    else if (event.type === 'fallback') event.allowed ? this.fallbackAllowed++ : this.fallbackDenied++
    else if (event.type === 'lost-writes') this.lostWrites++
    else if (event.type === 'late-charge') this[event.dropped ? 'droppedUnits' : 'lateUnits'] += event.units
    else if (event.type === 'lease') {
      this.leases++
      this.leaseUnits += event.units
    } else this.turned(event.node, event.state)
  }

  /** A half-open node is still unreachable, so `sinceMs` stays. */
  private turned(node: string, state: BreakerState): void {
    const before = this.breakers.get(node)
    const isSameOutage = before !== undefined && before.state !== 'closed' && state !== 'closed'
    this.breakers.set(node, { node, state, sinceMs: isSameOutage ? before.sinceMs : this.unixMs() })
  }

  read(): StoreCounts {
    const { calls, checks, failedCalls, latency, failures, denyCache, leased } = this
    const { fallbackAllowed, fallbackDenied, leases, leaseUnits, breakers, callCapPerSecond } = this
    const { lostWrites, lateUnits, droppedUnits } = this
    return {
      calls,
      checks,
      failedCalls,
      latency: latency.read(),
      failures: { ...failures },
      fallbackAllowed,
      fallbackDenied,
      denyCache,
      leased,
      leases,
      leaseUnits,
      lostWrites,
      lateUnits,
      droppedUnits,
      breakers: [...breakers.values()],
      callCapPerSecond,
    }
  }
}
