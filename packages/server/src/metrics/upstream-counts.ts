import type { Family } from 'headgate/prometheus'

/** An attempt to have a request answered by an upstream. */
export interface UpstreamAttempt {
  /** Host and port of the upstream's first server, as the policy file has them. */
  readonly upstream: string
  /** Of the answer; null where none came. */
  readonly status: number | null
  /** Until the head of the answer was there, or it was clear that none comes. */
  readonly seconds: number
}

/** Counts of one upstream, as plain data. */
export interface UpstreamReading {
  readonly upstream: string
  /** By the class of the answer, or `failed`. */
  readonly byOutcome: Readonly<Record<string, number>>
  /** By how long it took, one more than there are bounds. */
  readonly buckets: readonly number[]
  readonly sumSeconds: number
}

interface Counted {
  readonly byOutcome: Map<string, number>
  /** One more than bounds. */
  readonly buckets: number[]
  sumSeconds: number
}

const BOUNDS_SECONDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]
/** Reloads can bring ever new upstreams; those beyond so many are counted as `other`. */
const MAX_UPSTREAMS = 20
const OTHER = 'other'

/** Counts how upstreams answer. */
export class UpstreamCounts {
  private readonly byUpstream = new Map<string, Counted>()

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
    return [...this.byUpstream].map(([upstream, { byOutcome, buckets, sumSeconds }]) => ({
      ...{ upstream, byOutcome: Object.fromEntries(byOutcome), buckets: [...buckets], sumSeconds },
    }))
  }

  private find(upstream: string): Counted {
    const known = this.byUpstream.get(upstream)
    if (known !== undefined) return known
    if (this.byUpstream.size >= MAX_UPSTREAMS && upstream !== OTHER) return this.find(OTHER)
    const buckets = [...BOUNDS_SECONDS.map(() => 0), 0]
    const counted: Counted = { byOutcome: new Map(), buckets, sumSeconds: 0 }
    this.byUpstream.set(upstream, counted)
    return counted
  }
}

export function upstreamFamilies(readings: readonly UpstreamReading[]): readonly Family[] {
  return [
    {
      ...{ name: 'rate_limit_upstream_requests_total', type: 'counter', labels: ['upstream', 'status'] },
      help: 'Requests sent to an upstream, by the class of the answer; one that is sent again counts again.',
      samples: readings.flatMap(({ upstream, byOutcome }) =>
        Object.entries(byOutcome).map(([status, value]) => ({ labels: { upstream, status }, value })),
      ),
    },
    {
      ...{ name: 'rate_limit_upstream_latency_seconds', type: 'histogram', labels: ['upstream'] },
      help: 'How long an upstream took until the head of its answer was there, or it had failed.',
      samples: readings.map(({ upstream, buckets, sumSeconds }) => ({
        labels: { upstream },
        value: { boundsSeconds: BOUNDS_SECONDS, counts: buckets, sumSeconds, exemplars: [] },
      })),
    },
  ]
}

/** The readings of several processes, those of one upstream together. */
export function mergeUpstreams(readings: readonly UpstreamReading[]): readonly UpstreamReading[] {
  const merged = new Map<string, UpstreamReading>()
  for (const reading of readings) {
    const before = merged.get(reading.upstream)
    merged.set(reading.upstream, before === undefined ? reading : sumOf(before, reading))
  }
  return [...merged.values()]
}

function sumOf(one: UpstreamReading, other: UpstreamReading): UpstreamReading {
  const outcomes = new Set([...Object.keys(one.byOutcome), ...Object.keys(other.byOutcome)])
  return {
    upstream: one.upstream,
    byOutcome: Object.fromEntries(
      [...outcomes].map(name => [name, (one.byOutcome[name] ?? 0) + (other.byOutcome[name] ?? 0)]),
    ),
    buckets: one.buckets.map((count, bucket) => count + (other.buckets[bucket] ?? 0)),
    sumSeconds: one.sumSeconds + other.sumSeconds,
  }
}
