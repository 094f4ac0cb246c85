import type { Limit } from '../../algorithms/algorithm.js'

/** One request of a history: when it comes, its cost, and the required answer. */
export interface Case {
  /** Since the start of the history, which is on a window's boundary. */
  readonly atMs: number
  readonly cost: number
  readonly allowed: boolean
  readonly remaining: number
  /** Null: no wait is long enough. */
  readonly retryAfterMs: number | null
  readonly resetAfterMs: number
  readonly because: string
  /** Units that were used already, charged before the request: to a ban, its strikes. */
  readonly beyond: number
}

/** A history of one key. The engine, the embedded store and Redis answer every row, in order. */
export interface CaseTable {
  readonly title: string
  readonly limit: Limit
  readonly cases: readonly Case[]
}

type Row = readonly [
  atMs: number,
  cost: number,
  allowed: boolean,
  remaining: number,
  retryAfterMs: number | null,
  resetAfterMs: number,
  because: string,
  beyond?: number,
]

/** Builds a table from rows in the order at, cost, allowed, remaining, retry after, reset after, because, beyond. */
export function caseTable(title: string, limit: Limit, rows: readonly Row[]): CaseTable {
  const cases = rows.map(
    ([atMs, cost, allowed, remaining, retryAfterMs, resetAfterMs, because, beyond = 0]) => ({
      atMs,
      cost,
      allowed,
      remaining,
      retryAfterMs,
      resetAfterMs,
      because,
      beyond,
    }),
  )
  return { title, limit, cases }
}
