import { addLatencies, FAILURE_KINDS, latencyQuantileMs, type StoreCounts } from 'headgate/internal'
import { durationSeconds, type Second } from './second.js'

/** The state of the store, as the dashboard shows it. */
export interface StoreStats {
  readonly kind: 'redis' | 'memory'
  readonly state: 'up' | 'down'
  readonly sinceMs: number
  readonly availability: number | null
  readonly breakers: StoreCounts['breakers']
  readonly callsPerSecond: number
  readonly checksPerCall: number | null
  readonly latencyMs: { readonly p50: number | null; readonly p99: number | null }
  readonly errorsPerSecond: number
  readonly errors: readonly { readonly kind: string; readonly total: number }[]
  /** The most calls this process makes in a second; null if unbounded. */
  readonly callCapPerSecond: number | null
}

export interface Shortcuts {
  readonly denyCachePerSecond: number
  readonly leasedPerSecond: number
  readonly leasesPerSecond: number
  readonly leaseUnitsPerSecond: number
}

interface StoreOptions {
  readonly kind: 'redis' | 'memory'
  readonly startedAtMs: number
  /** Since the process began. */
  readonly total: StoreCounts
  /** Since when the fleet's stats could not be read; null while they can be. */
  readonly unheardSinceMs: number | null
  readonly nowMs: number
}

/** A store that is late once or twice is not away. */
const LATE_MS = 3_000

export function storeStats(
  seconds: readonly Second[],
  { kind, startedAtMs, total, unheardSinceMs, nowMs }: StoreOptions,
): StoreStats {
  const during = durationSeconds(seconds)
  const { calls, checks, errors, latency } = sumStore(seconds)
  const away = total.breakers.filter(({ state }) => state !== 'closed')
  // If no request asks it, only the stats notice that it is away.
  const isUnheard = unheardSinceMs !== null && nowMs - unheardSinceMs > LATE_MS
  const turned = (away.length > 0 ? away : total.breakers).map(one => one.sinceMs)
  return {
    kind,
    state: away.length > 0 || isUnheard ? 'down' : 'up',
    sinceMs: away.length === 0 && isUnheard ? unheardSinceMs : Math.max(startedAtMs, ...turned),
    availability: availabilityOf(total),
    breakers: total.breakers,
    callsPerSecond: calls / during,
    checksPerCall: calls === 0 ? null : checks / calls,
    latencyMs: { p50: latencyQuantileMs(latency, 0.5), p99: latencyQuantileMs(latency, 0.99) },
    errorsPerSecond: errors / during,
    errors: FAILURE_KINDS.flatMap(kind =>
      total.failures[kind] === 0 ? [] : [{ kind, total: total.failures[kind] }],
    ),
    callCapPerSecond: total.callCapPerSecond,
  }
}

/**
 * The share of calls that were answered; a call that was not even made while the store was away counts as
 * unanswered.
 */
function availabilityOf({ calls, failedCalls, failures }: StoreCounts): number | null {
  const unsent = failures.unavailable
  return calls + unsent === 0 ? null : (calls - failedCalls) / (calls + unsent)
}

export function shortcuts(seconds: readonly Second[]): Shortcuts {
  const during = durationSeconds(seconds)
  const rate = (of: (second: Second) => number) =>
    seconds.reduce((sum, second) => sum + of(second), 0) / during
  return {
    denyCachePerSecond: rate(({ store }) => store.denyCache),
    leasedPerSecond: rate(({ store }) => store.leased),
    leasesPerSecond: rate(({ store }) => store.leases),
    leaseUnitsPerSecond: rate(({ store }) => store.leaseUnits),
  }
}

function sumStore(seconds: readonly Second[]) {
  const latency: number[] = []
  let calls = 0
  let checks = 0
  let errors = 0
  for (const { store } of seconds) {
    calls += store.calls
    checks += store.checks
    errors += errorsOf(store.failures)
    addLatencies(latency, store.latency.counts)
  }
  return { calls, checks, errors, latency }
}

export function errorsOf(failures: StoreCounts['failures']): number {
  return FAILURE_KINDS.reduce((sum, kind) => sum + failures[kind], 0)
}
