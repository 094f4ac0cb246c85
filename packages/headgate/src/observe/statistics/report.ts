/** The counts of a process over about a second, to be added to those of others. */
import type { Clock, Timers } from '../../time/clock.js'
import type { Denial, DeniedCallers } from './denials.js'
import type { Recorder } from './recorder.js'
import { FAILURE_KINDS, type FailureKind, type NodeState, type StoreCounts } from './store-counts.js'
import type { TallyCounts } from './tally.js'

export interface Report extends DeniedCallers {
  /** The duration it covers. */
  readonly durationMs: number
  /** Without tallies that are all zero. */
  readonly decisions: readonly ReportedTally[]
  readonly shadowDenied: number
  /** Whom limits in shadow would have denied most; the policy is the name of the limit. */
  readonly shadowCallers: DeniedCallers
  readonly store: Omit<StoreCounts, 'breakers' | 'callCapPerSecond'>
  /** The current state of nodes that have been unreachable. */
  readonly breakers: readonly NodeState[]
  /** Those that are kept for review. */
  readonly denials: readonly Denial[]
}

/** Waiting is measured per process alone. */
export type ReportedTally = Omit<TallyCounts, 'waited'>

type Listener = (report: Report) => void

const EVERY_MS = 1_000

/** Reports once a second to its listeners, and does nothing without any. */
export function createReporter(
  recorder: Recorder,
  clock: Clock,
  timers: Timers,
): (listener: Listener) => () => void {
  const listeners = new Set<Listener>()
  let cancel = (): void => {}
  let before = readNow()

  function readNow() {
    const { breakers, callCapPerSecond: _, ...store } = recorder.store.read()
    const { shadowDenied } = recorder
    return { atUs: clock.nowUs(), decisions: recorder.tallies.read(), store, breakers, shadowDenied }
  }

  function tick(): void {
    cancel = timers.inBackground(EVERY_MS, tick)
    const now = readNow()
    const report: Report = {
      durationMs: (now.atUs - before.atUs) / 1000,
      decisions: decisionsSince(before.decisions, now.decisions),
      shadowDenied: now.shadowDenied - before.shadowDenied,
      store: storeSince(before.store, now.store),
      shadowCallers: recorder.mostShadowDenied.take(),
      breakers: now.breakers,
      ...recorder.mostDenied.take(),
      denials: recorder.denials.take(),
    }
    before = now
    for (const listener of [...listeners]) tell(listener, report)
  }

  return listener => {
    if (listeners.size === 0) {
      before = readNow()
      cancel = timers.inBackground(EVERY_MS, tick)
    }
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) cancel()
    }
  }
}

function tell(listener: Listener, report: Report): void {
  try {
    listener(report)
  } catch {
    // A failing listener must not keep the others from being called.
  }
}

/** Tallies are never removed and keep their order. */
function decisionsSince(before: readonly TallyCounts[], now: readonly TallyCounts[]): ReportedTally[] {
  const known = new Map(before.map(tally => [keyOf(tally), tally]))
  return now.flatMap(({ waited: _, ...tally }): ReportedTally[] => {
    const earlier = known.get(keyOf(tally))
    if (earlier === undefined) return isNothing(tally) ? [] : [tally]
    const since: ReportedTally = {
      ...tally,
      allowed: tally.allowed - earlier.allowed,
      denied: tally.denied - earlier.denied,
      nearLimit: tally.nearLimit - earlier.nearLimit,
      latency: latencySince(earlier.latency, tally.latency),
    }
    return isNothing(since) ? [] : [since]
  })
}

function isNothing({ allowed, denied }: ReportedTally): boolean {
  return allowed === 0 && denied === 0
}

function keyOf({ policy, tier, rule, source }: ReportedTally): string {
  return JSON.stringify([policy, tier, rule, source])
}

type Latency = TallyCounts['latency']

function latencySince(before: Latency, now: Latency): Latency {
  return {
    counts: now.counts.map((count, bucket) => count - (before.counts[bucket] ?? 0)),
    sumUs: now.sumUs - before.sumUs,
  }
}

function storeSince(before: Report['store'], now: Report['store']): Report['store'] {
  const failures = Object.fromEntries(
    FAILURE_KINDS.map(kind => [kind, now.failures[kind] - before.failures[kind]]),
  ) as Record<FailureKind, number>
  return {
    calls: now.calls - before.calls,
    checks: now.checks - before.checks,
    failedCalls: now.failedCalls - before.failedCalls,
    latency: latencySince(before.latency, now.latency),
    failures,
    fallbackAllowed: now.fallbackAllowed - before.fallbackAllowed,
    fallbackDenied: now.fallbackDenied - before.fallbackDenied,
    denyCache: now.denyCache - before.denyCache,
    leased: now.leased - before.leased,
    leases: now.leases - before.leases,
    leaseUnits: now.leaseUnits - before.leaseUnits,
    lostWrites: now.lostWrites - before.lostWrites,
    lateUnits: now.lateUnits - before.lateUnits,
    droppedUnits: now.droppedUnits - before.droppedUnits,
  }
}
