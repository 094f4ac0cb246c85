/**
 * Counts latencies in fixed buckets: sums over processes and seconds are exact, and a quantile is off by at most
 * the width of its bucket.
 */

/** Upper bounds in seconds; one more bucket takes everything longer. */
export const LATENCY_BOUNDS_SECONDS: readonly number[] = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
]
const BOUNDS_US = LATENCY_BOUNDS_SECONDS.map(bound => bound * 1_000_000)
const LATENCY_BUCKETS = BOUNDS_US.length + 1

/** Counted latencies, as plain data. */
export interface LatencyCounts {
  /** Per bucket, not cumulative. */
  readonly counts: readonly number[]
  readonly sumUs: number
}

export class Latencies {
  readonly counts: number[] = new Array<number>(LATENCY_BUCKETS).fill(0)
  sumUs = 0

  /** Counts a latency that stands for `weight` decisions; returns its bucket. */
  add(us: number, weight: number): number {
    const bucket = bucketOf(us)
    this.counts[bucket] = (this.counts[bucket] as number) + weight
    this.sumUs += us * weight
    return bucket
  }

  read(): LatencyCounts {
    return { counts: [...this.counts], sumUs: this.sumUs }
  }
}

function bucketOf(us: number): number {
  let bucket = 0
  while (bucket < BOUNDS_US.length && us > (BOUNDS_US[bucket] as number)) bucket++
  return bucket
}

/** Returns the latency in milliseconds at a quantile, or null if nothing was counted. */
export function quantileMs(counts: readonly number[], quantile: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let rest = quantile * total
  for (let bucket = 0; bucket < counts.length; bucket++) {
    const count = counts[bucket] as number
    if (count > 0 && rest <= count) return interpolateMs(bucket, rest / count)
    rest -= count
  }
  return interpolateMs(counts.length - 1, 1)
}

/** Interpolates within a bucket. Of the last one only the lower bound is known. */
function interpolateMs(bucket: number, share: number): number {
  const fromUs = bucket === 0 ? 0 : (BOUNDS_US[bucket - 1] as number)
  const toUs = BOUNDS_US[bucket] ?? fromUs
  return (fromUs + (toUs - fromUs) * share) / 1000
}

/** Adds the counts of one list to another of the same buckets. */
export function addCounts(into: number[], counts: readonly number[]): void {
  for (let bucket = 0; bucket < counts.length; bucket++) {
    into[bucket] = (into[bucket] ?? 0) + (counts[bucket] as number)
  }
}
