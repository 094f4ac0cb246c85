/** The counts of one second, by this process or by the fleet, and sums of them. */
import { addLatencies, latencyQuantileMs, type Report } from 'headgate/internal'

export interface Second extends Report {
  /** The Unix time in milliseconds at its end. */
  readonly atMs: number
}

/** A row of the dashboard about a tier, policy, rule or source. */
export interface Row {
  readonly name: string | null
  readonly allowedPerSecond: number
  readonly deniedPerSecond: number
  readonly denialRate: number | null
  readonly p50Ms: number | null
  readonly p99Ms: number | null
}

interface Sum {
  allowed: number
  denied: number
  nearLimit: number
  readonly latency: number[]
}

type Dimension = 'policy' | 'tier' | 'rule' | 'source'

const MAX_ROWS = 50
const OTHER = 'other'

export function durationSeconds(seconds: readonly Second[]): number {
  return Math.max(0.001, seconds.reduce((sum, { durationMs }) => sum + durationMs, 0) / 1000)
}

/** Sums the decisions of some seconds. */
export function sumOf(seconds: readonly Second[]): Sum {
  const sum: Sum = { allowed: 0, denied: 0, nearLimit: 0, latency: [] }
  for (const { decisions } of seconds) for (const tally of decisions) add(sum, tally)
  return sum
}

/** Groups the decisions of some seconds by one of their labels, the busiest first. */
export function rowsBy(dimension: Dimension, seconds: readonly Second[]): Row[] {
  const sums = new Map<string | null, Sum>()
  for (const { decisions } of seconds) {
    for (const tally of decisions) {
      const name = nameOf(tally[dimension])
      let sum = sums.get(name)
      if (sum === undefined) {
        sum = { allowed: 0, denied: 0, nearLimit: 0, latency: [] }
        sums.set(name, sum)
      }
      add(sum, tally)
    }
  }
  const busiest = [...sums].toSorted(([, one], [, other]) => totalOf(other) - totalOf(one))
  const rest = busiest.splice(MAX_ROWS)
  if (rest.length > 0) busiest.push([OTHER, mergeOf(rest.map(([, sum]) => sum))])
  const during = durationSeconds(seconds)
  return busiest.map(([name, sum]) => rowOf(name, sum, during))
}

/** A decision without a policy has none to name. */
function nameOf(label: string | null): string | null {
  return label === '' ? null : label
}

function rowOf(name: string | null, sum: Sum, during: number): Row {
  return {
    name,
    allowedPerSecond: sum.allowed / during,
    deniedPerSecond: sum.denied / during,
    denialRate: denialRate(sum),
    p50Ms: latencyQuantileMs(sum.latency, 0.5),
    p99Ms: latencyQuantileMs(sum.latency, 0.99),
  }
}

/** Null if there was no request. */
export function denialRate({ allowed, denied }: { allowed: number; denied: number }): number | null {
  return allowed + denied === 0 ? null : denied / (allowed + denied)
}

function add(sum: Sum, tally: Second['decisions'][number]): void {
  sum.allowed += tally.allowed
  sum.denied += tally.denied
  sum.nearLimit += tally.nearLimit
  addLatencies(sum.latency, tally.latency.counts)
}

function mergeOf(sums: readonly Sum[]): Sum {
  const merged: Sum = { allowed: 0, denied: 0, nearLimit: 0, latency: [] }
  for (const { allowed, denied, nearLimit, latency } of sums) {
    merged.allowed += allowed
    merged.denied += denied
    merged.nearLimit += nearLimit
    addLatencies(merged.latency, latency)
  }
  return merged
}

function totalOf({ allowed, denied }: Sum): number {
  return allowed + denied
}
