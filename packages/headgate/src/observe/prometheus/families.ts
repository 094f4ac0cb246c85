/**
 * Converts the counts of a process to families of metrics. Labels are names of the policy file and fixed words,
 * never subjects: a million clients make no more series than one.
 */

import { LATENCY_BOUNDS_SECONDS, type LatencyCounts } from '../statistics/latencies.js'
import type { Exemplar } from '../statistics/recorder.js'
import type { LimiterReading, ProcessStatistics } from '../statistics/statistics.js'
import { FAILURE_KINDS } from '../statistics/store-counts.js'
import type { TallyCounts } from '../statistics/tally.js'

export interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  readonly samples: readonly Sample[]
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  /** A number, or the counts of a histogram. */
  readonly value: number | Histogram
}

export interface Histogram {
  readonly boundsSeconds: readonly number[]
  /** Per bucket, not cumulative; one more than bounds. */
  readonly counts: readonly number[]
  readonly sumSeconds: number
  /** Per bucket. */
  readonly exemplars: readonly (Exemplar | undefined)[]
}

/** Returns all families of a process, in the order of exposition. */
export function familiesOf(read: ProcessStatistics, version: string): readonly Family[] {
  return [
    ...decisionFamilies(read),
    ...storeFamilies(read),
    ...limiterFamilies(read.limiters),
    buildInfo(version),
  ]
}

function decisionFamilies(read: ProcessStatistics): Family[] {
  const { decisions, remaining } = read
  const sum = (of: (tally: TallyCounts) => number) => decisions.reduce((all, tally) => all + of(tally), 0)
  return [
    counter(
      'rate_limit_allowed_total',
      'Requests that passed.',
      sum(({ allowed }) => allowed),
    ),
    counter(
      'rate_limit_blocked_total',
      'Requests that were denied.',
      sum(({ denied }) => denied),
    ),
    {
      name: 'rate_limit_rejections_total',
      type: 'counter',
      labels: ['reason'],
      help: 'Denied requests, by who denied them: this process, the shared store, or the failure mode.',
      samples: Object.entries(rejections(decisions)).map(([reason, value]) => ({
        labels: { reason },
        value,
      })),
    },
    {
      name: 'rate_limit_decisions_total',
      type: 'counter',
      labels: ['policy', 'tier', 'rule', 'source', 'outcome'],
      help: 'Decisions, by policy, tier, rule and source.',
      samples: decisions.flatMap(tally => [
        { labels: { ...labelsOf(tally), outcome: 'allowed' }, value: tally.allowed },
        { labels: { ...labelsOf(tally), outcome: 'denied' }, value: tally.denied },
      ]),
    },
    {
      name: 'rate_limit_near_limit_total',
      type: 'counter',
      labels: ['policy'],
      help: 'Requests that passed with a tenth of a limit left, or less.',
      samples: sumBy(decisions, ({ policy }) => policy).map(([policy, tallies]) => ({
        labels: { policy },
        value: tallies.reduce((all, { nearLimit }) => all + nearLimit, 0),
      })),
    },
    {
      name: 'rate_limit_latency_seconds',
      type: 'histogram',
      labels: ['source', 'waited'],
      help: 'How long decisions took. One in 64 of the decisions made in the process is timed, and counts as 64. Requests that waited for room are those with waited="yes".',
      samples: sumBy(decisions, ({ source }) => source).flatMap(([source, tallies]) => {
        const waited = tallies.flatMap(tally => tally.waited ?? [])
        return [
          {
            labels: { source },
            value: histogramOf(
              tallies.map(({ latency }) => latency),
              read.exemplars.map(exemplar => (exemplar?.source === source ? exemplar : undefined)),
            ),
          },
          ...(waited.length === 0
            ? []
            : [{ labels: { source, waited: 'yes' }, value: histogramOf(waited, []) }]),
        ]
      }),
    },
    {
      name: 'rate_limit_tokens_remaining',
      type: 'gauge',
      labels: ['scope'],
      help: 'Units left when last seen: of a global limit, and of a narrower one.',
      samples: Object.entries(remaining).flatMap(([scope, value]) =>
        value === null ? [] : [{ labels: { scope }, value }],
      ),
    },
    counter(
      'rate_limit_shadow_denied_total',
      'Requests that shadow limits would have denied.',
      read.shadowDenied,
    ),
  ]
}

function storeFamilies({ store }: ProcessStatistics): Family[] {
  const { failures, breakers } = store
  return [
    counter(
      'rate_limit_backend_errors_total',
      'Questions that the store could not decide.',
      FAILURE_KINDS.reduce((all, kind) => all + failures[kind], 0),
    ),
    {
      name: 'rate_limit_backend_errors_by_kind_total',
      type: 'counter',
      labels: ['kind'],
      help: 'The same, by cause.',
      samples: FAILURE_KINDS.map(kind => ({ labels: { kind }, value: failures[kind] })),
    },
    counter('rate_limit_store_calls_total', 'Calls to the store.', store.calls),
    counter(
      'rate_limit_store_failed_calls_total',
      'Calls that got no answer, or an error.',
      store.failedCalls,
    ),
    counter(
      'rate_limit_store_checks_total',
      'Checks sent in those calls; divided by the calls, the size of a batch.',
      store.checks,
    ),
    {
      name: 'rate_limit_store_latency_seconds',
      type: 'histogram',
      labels: [],
      help: 'How long the store took to answer a call.',
      samples: [{ labels: {}, value: histogramOf([store.latency], []) }],
    },
    {
      name: 'rate_limit_breaker_open',
      type: 'gauge',
      labels: ['node'],
      help: '1 while the breaker of a node is open, because it has stopped answering, otherwise 0.',
      // Before any breaker has turned, there is a series all the same: an alert must tell 0 from nothing known.
      samples:
        breakers.length === 0
          ? [{ labels: { node: '' }, value: 0 }]
          : breakers.map(({ node, state }) => ({ labels: { node }, value: state === 'closed' ? 0 : 1 })),
    },
    {
      name: 'rate_limit_fallback_total',
      type: 'counter',
      labels: ['outcome'],
      help: 'Requests decided without the store, by their failure mode.',
      samples: [
        { labels: { outcome: 'allowed' }, value: store.fallbackAllowed },
        { labels: { outcome: 'denied' }, value: store.fallbackDenied },
      ],
    },
    counter(
      'rate_limit_deny_cache_hits_total',
      'Denials answered from the process, without a call.',
      store.denyCache,
    ),
    counter('rate_limit_leased_total', 'Requests that passed on leased units.', store.leased),
    counter('rate_limit_leases_total', 'Leases taken.', store.leases),
    counter('rate_limit_lease_units_total', 'Units leased.', store.leaseUnits),
    counter(
      'rate_limit_state_rewinds_total',
      'How often a node had lost writes it had acknowledged.',
      store.lostWrites,
    ),
    {
      name: 'rate_limit_late_units_total',
      type: 'counter',
      labels: ['outcome'],
      help: 'Units of quotas admitted without the store: charged to it afterwards, or dropped.',
      samples: [
        { labels: { outcome: 'charged' }, value: store.lateUnits },
        { labels: { outcome: 'dropped' }, value: store.droppedUnits },
      ],
    },
  ]
}

function limiterFamilies(limiters: readonly LimiterReading[]): Family[] {
  if (limiters.length === 0) return []
  const sum = (of: (limiter: LimiterReading) => number) =>
    limiters.reduce((all, limiter) => all + of(limiter), 0)
  const [first] = limiters as [LimiterReading]
  const version = limiters.find(({ configVersion }) => configVersion !== null)?.configVersion ?? null
  return [
    counter(
      'rate_limit_shadow_divergence_total',
      'Decisions in mode compare in which the process and the store differed.',
      sum(({ shadowDivergence }) => shadowDivergence),
    ),
    wouldBe('rate_limit_shadow_total', 'Decisions that shadow limits would have made.', limiters, 'shadow'),
    wouldBe(
      'rate_limit_candidate_total',
      'Decisions that candidates would have made.',
      limiters,
      'candidates',
    ),
    counter(
      'rate_limit_faults_total',
      'Requests that could not be checked because something threw.',
      sum(({ faults }) => faults),
    ),
    counter(
      'rate_limit_config_reloads_total',
      'Policy files put in force since the start.',
      sum(({ reloads }) => reloads),
    ),
    {
      name: 'rate_limit_bans_total',
      type: 'counter',
      labels: ['policy'],
      help: 'Bans that began, of callers who were denied too often.',
      samples: [...new Set(limiters.flatMap(({ bans }) => Object.keys(bans)))].map(policy => ({
        labels: { policy },
        value: sum(({ bans }) => bans[policy] ?? 0),
      })),
    },
    gauge(
      'rate_limit_control_enabled',
      '0 while limits are switched off and everything passes.',
      first.control.enabled ? 1 : 0,
    ),
    gauge(
      'rate_limit_control_multiplier',
      'The factor applied to all limits; 0 pauses them.',
      first.control.multiplier,
    ),
    gauge('rate_limit_overrides', 'Overrides stored.', first.overrides),
    {
      name: 'rate_limit_configured_limit',
      type: 'gauge',
      labels: ['policy', 'tier', 'limit'],
      help: 'Units that a limit allows now, with the multiplier; of the first 200 limits of the policy file.',
      samples: first.limits.map(({ policy, tier, limit, units }) => ({
        labels: { policy, tier: tier ?? '', limit },
        value: units,
      })),
    },
    ...(version === null ? [] : [configInfo(version)]),
  ]
}

function configInfo(version: string): Family {
  return {
    name: 'rate_limit_config_info',
    type: 'gauge',
    labels: ['version'],
    help: 'The version of the policy file in force.',
    samples: [{ labels: { version }, value: 1 }],
  }
}

function buildInfo(version: string): Family {
  return {
    name: 'rate_limit_build_info',
    type: 'gauge',
    labels: ['version'],
    help: 'The version of Headgate.',
    samples: [{ labels: { version }, value: 1 }],
  }
}

/** The published reasons: this process's own limit, the shared one, or none because the store failed. */
function rejections(decisions: readonly TallyCounts[]): Record<string, number> {
  const reasons = { local_exhausted: 0, distributed_exhausted: 0, backend_error: 0 }
  for (const { source, denied } of decisions) {
    if (source === 'redis') reasons.distributed_exhausted += denied
    else if (source === 'closed') reasons.backend_error += denied
    else reasons.local_exhausted += denied
  }
  return reasons
}

function labelsOf({ policy, tier, rule, source }: TallyCounts): Record<string, string> {
  return { policy, tier: tier ?? '', rule: rule ?? '', source }
}

function sumBy(
  decisions: readonly TallyCounts[],
  nameOf: (tally: TallyCounts) => string,
): [string, TallyCounts[]][] {
  const byName = new Map<string, TallyCounts[]>()
  for (const tally of decisions) byName.set(nameOf(tally), [...(byName.get(nameOf(tally)) ?? []), tally])
  return [...byName]
}

function histogramOf(latencies: readonly LatencyCounts[], exemplars: Histogram['exemplars']): Histogram {
  const counts = LATENCY_BOUNDS_SECONDS.map(() => 0)
  counts.push(0)
  let sumUs = 0
  for (const latency of latencies) {
    for (let bucket = 0; bucket < counts.length; bucket++) {
      counts[bucket] = (counts[bucket] as number) + (latency.counts[bucket] ?? 0)
    }
    sumUs += latency.sumUs
  }
  return { boundsSeconds: LATENCY_BOUNDS_SECONDS, counts, sumSeconds: sumUs / 1_000_000, exemplars }
}

function counter(name: string, help: string, value: number): Family {
  return { name, type: 'counter', help, labels: [], samples: [{ labels: {}, value }] }
}

function gauge(name: string, help: string, value: number): Family {
  return { name, type: 'gauge', help, labels: [], samples: [{ labels: {}, value }] }
}

function wouldBe(
  name: string,
  help: string,
  limiters: readonly LimiterReading[],
  kind: 'shadow' | 'candidates',
): Family {
  const policies = new Set(limiters.flatMap(limiter => Object.keys(limiter[kind])))
  const sum = (policy: string, of: 'wouldAllow' | 'wouldDeny') =>
    limiters.reduce((all, limiter) => all + (limiter[kind][policy]?.[of] ?? 0), 0)
  return {
    name,
    type: 'counter',
    help,
    labels: ['policy', 'would'],
    samples: [...policies].flatMap(policy => [
      { labels: { policy, would: 'allow' }, value: sum(policy, 'wouldAllow') },
      { labels: { policy, would: 'deny' }, value: sum(policy, 'wouldDeny') },
    ]),
  }
}
