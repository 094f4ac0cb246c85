import type { Family } from 'headgate/internal'
import type { UpstreamRejection } from '../gateway/enter-upstream.js'
import type { UpstreamAttempt } from '../gateway/forward.js'
import { poolName, type UpstreamPool } from '../gateway/upstream-pool.js'

/** Counts of one upstream, as plain data. */
export interface UpstreamReading {
  readonly upstream: string
  /** By the class of the answer, or `failed`. */
  readonly byOutcome: Readonly<Record<string, number>>
  /** Requests for which it had no permit, by reason. */
  readonly rejectedBy: Readonly<Record<string, number>>
  /** Requests for which it had no permit, by priority. */
  readonly rejectedOf: Readonly<Record<string, number>>
  /** By latency, one more than there are bounds. */
  readonly buckets: readonly number[]
  readonly sumSeconds: number
  /** The adaptive bound of requests at once; null if there is none. */
  readonly capacity: number | null
  /** How many requests wait for an answer to begin; null if not counted. */
  readonly waiting: number | null
}

interface Counted {
  readonly byOutcome: Map<string, number>
  readonly rejectedBy: Map<string, number>
  readonly rejectedOf: Map<string, number>
  /** One more than bounds. */
  readonly buckets: number[]
  sumSeconds: number
}

export const BOUNDS_SECONDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]
/** Reloads can bring ever new upstreams; those beyond this number are counted as `other`. */
const MAX_UPSTREAMS = 20
const OTHER = 'other'

/** Counts how upstreams answer. */
export class UpstreamCounts {
  private readonly byUpstream = new Map<string, Counted>()

  /** `pools` returns those in use now. */
  constructor(private readonly pools: () => readonly UpstreamPool[] = () => []) {}

  addRejection({ upstream, reason, priority }: UpstreamRejection): void {
    const { rejectedBy, rejectedOf } = this.find(upstream)
    rejectedOf.set(priority, (rejectedOf.get(priority) ?? 0) + 1)
    rejectedBy.set(reason, (rejectedBy.get(reason) ?? 0) + 1)
  }

  add({ upstream, status, seconds }: UpstreamAttempt): void {
    const counted = this.find(upstream)
    const outcome = status === null ? 'failed' : `${Math.floor(status / 100)}xx`
    counted.byOutcome.set(outcome, (counted.byOutcome.get(outcome) ?? 0) + 1)
    const below = BOUNDS_SECONDS.findIndex(bound => seconds <= bound)
    const bucket = below === -1 ? BOUNDS_SECONDS.length : below
    counted.buckets[bucket] = (counted.buckets[bucket] as number) + 1
    counted.sumSeconds += seconds
  }

  read(): readonly UpstreamReading[] {
    const adaptive = new Map(
      this.pools()
        .slice(0, MAX_UPSTREAMS)
        .flatMap(pool => (pool.concurrency === null ? [] : [[poolName(pool), pool.concurrency] as const])),
    )
    for (const upstream of adaptive.keys()) this.find(upstream)
    return [...this.byUpstream].map(([upstream, counted]) => {
      const { byOutcome, rejectedBy, rejectedOf, buckets, sumSeconds } = counted
      const { limit: capacity, inFlight: waiting } = adaptive.get(upstream) ?? { limit: null, inFlight: null }
      return {
        upstream,
        byOutcome: Object.fromEntries(byOutcome),
        rejectedBy: Object.fromEntries(rejectedBy),
        rejectedOf: Object.fromEntries(rejectedOf),
        buckets: [...buckets],
        sumSeconds,
        capacity,
        waiting,
      }
    })
  }

  private find(upstream: string): Counted {
    const known = this.byUpstream.get(upstream)
    if (known !== undefined) return known
    if (this.byUpstream.size >= MAX_UPSTREAMS && upstream !== OTHER) return this.find(OTHER)
    const buckets = [...BOUNDS_SECONDS.map(() => 0), 0]
    const rejected = { rejectedBy: new Map(), rejectedOf: new Map() }
    const counted: Counted = { byOutcome: new Map(), ...rejected, buckets, sumSeconds: 0 }
    this.byUpstream.set(upstream, counted)
    return counted
  }
}

export function upstreamFamilies(readings: readonly UpstreamReading[]): readonly Family[] {
  return [
    {
      name: 'rate_limit_upstream_requests_total',
      type: 'counter',
      labels: ['upstream', 'status'],
      help: 'Requests sent to an upstream, by class of response; a repeated request counts again.',
      samples: readings.flatMap(({ upstream, byOutcome }) =>
        Object.entries(byOutcome).map(([status, value]) => ({ labels: { upstream, status }, value })),
      ),
    },
    {
      name: 'rate_limit_upstream_latency_seconds',
      type: 'histogram',
      labels: ['upstream'],
      help: 'How long an upstream took until its response headers arrived, or it failed.',
      samples: readings.map(({ upstream, buckets, sumSeconds }) => ({
        labels: { upstream },
        value: { boundsSeconds: BOUNDS_SECONDS, counts: buckets, sumSeconds, exemplars: [] },
      })),
    },
    {
      name: 'rate_limit_upstream_rejected_total',
      type: 'counter',
      labels: ['upstream', 'reason'],
      help: 'Requests denied because their upstream had no room, by cause.',
      samples: readings.flatMap(({ upstream, rejectedBy }) =>
        Object.entries(rejectedBy).map(([reason, value]) => ({ labels: { upstream, reason }, value })),
      ),
    },
    {
      name: 'rate_limit_upstream_shed_total',
      type: 'counter',
      labels: ['upstream', 'priority'],
      help: 'Requests denied because their upstream had no room, by priority.',
      samples: readings.flatMap(({ upstream, rejectedOf }) =>
        Object.entries(rejectedOf).map(([priority, value]) => ({ labels: { upstream, priority }, value })),
      ),
    },
    {
      name: 'rate_limit_upstream_capacity',
      type: 'gauge',
      labels: ['upstream'],
      help: 'How many requests an upstream can handle at once, estimated from its response times.',
      samples: readings.flatMap(({ upstream, capacity }) =>
        capacity === null ? [] : [{ labels: { upstream }, value: capacity }],
      ),
    },
    {
      name: 'rate_limit_upstream_waiting',
      type: 'gauge',
      labels: ['upstream'],
      help: 'Requests in progress at an upstream whose response has not begun, if its capacity is being measured.',
      samples: readings.flatMap(({ upstream, waiting }) =>
        waiting === null ? [] : [{ labels: { upstream }, value: waiting }],
      ),
    },
  ]
}

/** Merges the readings of several processes by upstream. */
export function mergeUpstreams(readings: readonly UpstreamReading[]): readonly UpstreamReading[] {
  const merged = new Map<string, UpstreamReading>()
  for (const reading of readings) {
    const before = merged.get(reading.upstream)
    merged.set(reading.upstream, before === undefined ? reading : sumOf(before, reading))
  }
  return [...merged.values()]
}

function sumOf(one: UpstreamReading, other: UpstreamReading): UpstreamReading {
  return {
    upstream: one.upstream,
    byOutcome: sumByName(one.byOutcome, other.byOutcome),
    rejectedBy: sumByName(one.rejectedBy, other.rejectedBy),
    rejectedOf: sumByName(one.rejectedOf, other.rejectedOf),
    buckets: one.buckets.map((count, bucket) => count + (other.buckets[bucket] ?? 0)),
    sumSeconds: one.sumSeconds + other.sumSeconds,
    capacity: sumOfKnown(one.capacity, other.capacity),
    waiting: sumOfKnown(one.waiting, other.waiting),
  }
}

type Counts = Readonly<Record<string, number>>

function sumByName(one: Counts, other: Counts): Counts {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...names].map(name => [name, (one[name] ?? 0) + (other[name] ?? 0)]))
}

function sumOfKnown(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : one + other
}
