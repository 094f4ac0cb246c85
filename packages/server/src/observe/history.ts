import { latencyQuantileMs } from 'headgate/internal'
import { type Second, sumOf } from './second.js'
import { errorsOf } from './store-stats.js'

/** One second of the charts. */
export interface Point {
  readonly atMs: number
  readonly allowed: number
  readonly denied: number
  readonly shadowDenied: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly storeErrors: number
  readonly storeCalls: number
}

export const MAX_POINTS = 900

/** The last quarter of an hour, one point a second. */
export class History {
  private kept: Point[] = []

  add(second: Second): void {
    const { allowed, denied, latency } = sumOf([second])
    this.kept.push({
      atMs: second.atMs,
      allowed,
      denied,
      shadowDenied: second.shadowDenied,
      p50Ms: latencyQuantileMs(latency, 0.5),
      p99Ms: latencyQuantileMs(latency, 0.99),
      storeErrors: errorsOf(second.store.failures),
      storeCalls: second.store.calls,
    })
    if (this.kept.length > MAX_POINTS) this.kept.shift()
  }

  last(seconds: number): readonly Point[] {
    return this.kept.slice(-seconds)
  }
}
