/** Merges the counts of several processes. */
import {
  addLatencies,
  FAILURE_KINDS,
  type LimiterReading,
  type NodeState,
  type ProcessStatistics,
  type Report,
  type TallyCounts,
} from 'headgate/internal'

import { mergeDeniedCallers } from './merge-denied-callers.js'

type StoreReport = Report['store']
type WouldBe = LimiterReading['shadow']

/** Merges reports of the same second. Rows with the same labels stay separate. */
export function mergeReports<T extends Omit<Report, 'denials'>>(
  reports: readonly T[],
): Omit<Report, 'denials'> {
  return {
    durationMs: Math.max(1_000, ...reports.map(({ durationMs }) => durationMs)),
    decisions: reports.flatMap(({ decisions }) => decisions),
    shadowDenied: reports.reduce((sum, { shadowDenied }) => sum + shadowDenied, 0),
    store: mergeStores(reports.map(({ store }) => store)),
    shadowCallers: mergeDeniedCallers(reports.map(({ shadowCallers }) => shadowCallers)),
    breakers: reports.flatMap(({ breakers }) => breakers),
    ...mergeDeniedCallers(reports),
  }
}

/**
 * Merges counts since the processes began. Counts are added; of shared settings, such as control, the first is
 * taken, and of remaining units the least.
 */
export function mergeStatistics(
  all: readonly [ProcessStatistics, ...(readonly ProcessStatistics[])],
): ProcessStatistics {
  const [first] = all
  return {
    startedAtMs: first.startedAtMs,
    decisions: mergeTallies(all.flatMap(({ decisions }) => decisions)),
    remaining: {
      global: least(all.map(({ remaining }) => remaining.global)),
      route: least(all.map(({ remaining }) => remaining.route)),
    },
    shadowDenied: all.reduce((sum, { shadowDenied }) => sum + shadowDenied, 0),
    store: {
      ...mergeStores(all.map(({ store }) => store)),
      breakers: mergeBreakers(all.flatMap(({ store }) => store.breakers)),
      callCapPerSecond: first.store.callCapPerSecond,
    },
    limiters: mergeGates(all.flatMap(({ limiters }) => limiters)),
    exemplars: first.exemplars.map((_, bucket) => all.find(one => one.exemplars[bucket])?.exemplars[bucket]),
  }
}

/** Returns what is kept of a process that has ended: its counts, without its current state. */
export function countsAlone(ended: ProcessStatistics): ProcessStatistics {
  return {
    ...ended,
    remaining: { global: null, route: null },
    store: { ...ended.store, breakers: [] },
    exemplars: [],
  }
}

function mergeStores(stores: readonly StoreReport[]): StoreReport {
  const sum = (of: (store: StoreReport) => number) => stores.reduce((all, store) => all + of(store), 0)
  return {
    calls: sum(({ calls }) => calls),
    checks: sum(({ checks }) => checks),
    failedCalls: sum(({ failedCalls }) => failedCalls),
    latency: mergeLatencies(stores.map(({ latency }) => latency)),
    failures: Object.fromEntries(
      FAILURE_KINDS.map(kind => [kind, sum(({ failures }) => failures[kind] ?? 0)]),
    ) as StoreReport['failures'],
    fallbackAllowed: sum(({ fallbackAllowed }) => fallbackAllowed),
    fallbackDenied: sum(({ fallbackDenied }) => fallbackDenied),
    denyCache: sum(({ denyCache }) => denyCache),
    leased: sum(({ leased }) => leased),
    leases: sum(({ leases }) => leases),
    leaseUnits: sum(({ leaseUnits }) => leaseUnits),
    lostWrites: sum(({ lostWrites }) => lostWrites),
    lateUnits: sum(({ lateUnits }) => lateUnits ?? 0),
    droppedUnits: sum(({ droppedUnits }) => droppedUnits ?? 0),
  }
}

function mergeLatencies(latencies: readonly TallyCounts['latency'][]): TallyCounts['latency'] {
  const counts: number[] = []
  for (const latency of latencies) addLatencies(counts, latency.counts)
  return { counts, sumUs: latencies.reduce((sum, { sumUs }) => sum + sumUs, 0) }
}

function mergeTallies(tallies: readonly TallyCounts[]): TallyCounts[] {
  const merged = new Map<string, TallyCounts>()
  for (const tally of tallies) {
    const key = JSON.stringify([tally.policy, tally.tier, tally.rule, tally.source])
    const before = merged.get(key)
    merged.set(key, before === undefined ? tally : sumOfTallies(before, tally))
  }
  return [...merged.values()]
}

function sumOfTallies(one: TallyCounts, other: TallyCounts): TallyCounts {
  return {
    ...one,
    allowed: one.allowed + other.allowed,
    denied: one.denied + other.denied,
    nearLimit: one.nearLimit + other.nearLimit,
    latency: mergeLatencies([one.latency, other.latency]),
    waited:
      one.waited && other.waited ? mergeLatencies([one.waited, other.waited]) : (one.waited ?? other.waited),
  }
}

/** A node that one of them cannot reach is reported, whatever the others say. */
function mergeBreakers(breakers: readonly NodeState[]): NodeState[] {
  const byNode = new Map<string, NodeState>()
  for (const breaker of breakers) {
    if ((byNode.get(breaker.node)?.state ?? 'closed') === 'closed') byNode.set(breaker.node, breaker)
  }
  return [...byNode.values()]
}

function mergeGates(limiters: readonly LimiterReading[]): LimiterReading[] {
  const [first] = limiters
  if (first === undefined) return []
  const sum = (of: (limiter: LimiterReading) => number) =>
    limiters.reduce((all, limiter) => all + of(limiter), 0)
  return [
    {
      ...first,
      shadow: mergeWouldBe(limiters.map(({ shadow }) => shadow)),
      candidates: mergeWouldBe(limiters.map(({ candidates }) => candidates)),
      bans: mergeBans(limiters.map(({ bans }) => bans)),
      shadowDivergence: sum(({ shadowDivergence }) => shadowDivergence),
      faults: sum(({ faults }) => faults),
    },
  ]
}

function mergeBans(all: readonly LimiterReading['bans'][]): LimiterReading['bans'] {
  const merged: Record<string, number> = {}
  for (const bans of all) {
    for (const [policy, count] of Object.entries(bans)) merged[policy] = (merged[policy] ?? 0) + count
  }
  return merged
}

export function mergeWouldBe(all: readonly WouldBe[]): WouldBe {
  const policies = new Set(all.flatMap(one => Object.keys(one)))
  const sum = (policy: string, of: 'wouldAllow' | 'wouldDeny') =>
    all.reduce((total, one) => total + (one[policy]?.[of] ?? 0), 0)
  return Object.fromEntries(
    [...policies].map(policy => [
      policy,
      { wouldAllow: sum(policy, 'wouldAllow'), wouldDeny: sum(policy, 'wouldDeny') },
    ]),
  )
}

function least(values: readonly (number | null)[]): number | null {
  const known = values.filter(value => value !== null)
  return known.length === 0 ? null : Math.min(...known)
}
