/** How one process is doing, beside what it decides: its event loop, its memory, its connections, its upstreams. */
import type { AnswerReading } from './gateway-answers.js'
import { LAG_BOUNDS_SECONDS, type ProcessReading } from './process-counts.js'
import { BOUNDS_SECONDS, type UpstreamReading } from './upstream-counts.js'

export interface Vitals {
  /** At most how late the event loop was, 99 times of 100, over the last seconds. */
  readonly lagMs: number
  readonly rssBytes: number
  /** Open connections of clients. */
  readonly connections: number
  readonly upstreams: readonly UpstreamVitals[]
  readonly answers: readonly AnswerVitals[]
}

/** What the gateway answers itself or closes, for one reason, over the last seconds. */
export interface AnswerVitals extends AnswerReading {
  readonly perSecond: number
}

/** An upstream over the last seconds. */
export interface UpstreamVitals {
  readonly upstream: string
  /** Responses per second, by class, or `failed`. */
  readonly perSecond: Readonly<Record<string, number>>
  /** By latency, one more than there are bounds. */
  readonly buckets: readonly number[]
  readonly capacity: number | null
  readonly waiting: number | null
}

export interface VitalsOptions {
  connections(): number
  upstreams(): readonly UpstreamReading[]
  answers(): readonly AnswerReading[]
  /** This process alone. */
  process(): ProcessReading
}

const WINDOW = 10

interface Looked {
  readonly atMs: number
  readonly process: ProcessReading
  readonly byName: ReadonlyMap<string, UpstreamReading>
  readonly answers: readonly AnswerReading[]
}

/** Returns the function that reads them; called once a second. */
export function createVitals({ connections, upstreams, answers, process }: VitalsOptions): () => Vitals {
  let before: Looked[] = []
  return () => {
    const byName = new Map(upstreams().map(one => [one.upstream, one]))
    const now: Looked = { atMs: performance.now(), process: process(), byName, answers: answers() }
    const [first = now] = before
    before = [...before, now].slice(-WINDOW)
    const seconds = Math.max(1, (now.atMs - first.atMs) / 1_000)
    const lags = now.process.lagBuckets.map(
      (count, bucket) => count - (first.process.lagBuckets[bucket] ?? 0),
    )
    return {
      lagMs: quantileMs(LAG_BOUNDS_SECONDS, lags, 0.99) ?? 0,
      rssBytes: now.process.memoryBytes,
      connections: connections(),
      upstreams: [...byName.values()].map(one => since(first.byName.get(one.upstream), one, seconds)),
      answers: now.answers.map(one => {
        const before = first.answers.find(
          ({ reason, status }) => reason === one.reason && status === one.status,
        )
        return { ...one, perSecond: (one.count - (before?.count ?? 0)) / seconds }
      }),
    }
  }
}

function since(before: UpstreamReading | undefined, now: UpstreamReading, seconds: number): UpstreamVitals {
  const { upstream, byOutcome, capacity, waiting } = now
  return {
    upstream,
    perSecond: Object.fromEntries(
      Object.entries(byOutcome).map(([outcome, count]) => [
        outcome,
        (count - (before?.byOutcome[outcome] ?? 0)) / seconds,
      ]),
    ),
    buckets: now.buckets.map((count, bucket) => count - (before?.buckets[bucket] ?? 0)),
    capacity,
    waiting,
  }
}

/** Adds those of several processes up, by upstream. */
export function mergeUpstreamVitals(all: readonly UpstreamVitals[]): readonly UpstreamVitals[] {
  const merged = new Map<string, UpstreamVitals>()
  for (const one of all) {
    const before = merged.get(one.upstream)
    merged.set(one.upstream, before === undefined ? one : sumOf(before, one))
  }
  return [...merged.values()]
}

function sumOf(one: UpstreamVitals, other: UpstreamVitals): UpstreamVitals {
  const outcomes = new Set([...Object.keys(one.perSecond), ...Object.keys(other.perSecond)])
  return {
    upstream: one.upstream,
    perSecond: Object.fromEntries(
      [...outcomes].map(name => [name, (one.perSecond[name] ?? 0) + (other.perSecond[name] ?? 0)]),
    ),
    buckets: one.buckets.map((count, bucket) => count + (other.buckets[bucket] ?? 0)),
    capacity: one.capacity === null ? other.capacity : one.capacity + (other.capacity ?? 0),
    waiting: one.waiting === null ? other.waiting : one.waiting + (other.waiting ?? 0),
  }
}

/** The same for what gateways answer themselves, the most frequent first. */
export function mergeAnswerVitals(all: readonly AnswerVitals[]): readonly AnswerVitals[] {
  const merged = new Map<string, AnswerVitals>()
  for (const one of all) {
    const key = `${one.reason} ${one.status}`
    const { count = 0, perSecond = 0 } = merged.get(key) ?? {}
    merged.set(key, { ...one, count: count + one.count, perSecond: perSecond + one.perSecond })
  }
  return [...merged.values()].toSorted((one, other) => other.count - one.count)
}

export function upstreamQuantileMs(buckets: readonly number[], quantile: number): number | null {
  return quantileMs(BOUNDS_SECONDS, buckets, quantile)
}

/** The upper bound of the bucket in which a quantile lies; null if nothing was counted. */
function quantileMs(bounds: readonly number[], buckets: readonly number[], quantile: number): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let below = 0
  const found = buckets.findIndex(count => {
    below += count
    return below >= total * quantile
  })
  return (bounds[found] ?? (bounds.at(-1) as number)) * 1_000
}
