import { caseTables } from '../cases/all-cases.js'
import type { CaseTable } from '../cases/case-table.js'
import { check, decide, type Law, type LawBench, same } from './law.js'

/** The published histories, row by row. */
export const caseLaws: readonly Law[] = caseTables.map(table => ({
  name: `a store answers the published cases of ${table.title}`,
  run: bench => runTable(bench, table),
}))

async function runTable(bench: LawBench, table: CaseTable): Promise<void> {
  let atMs = 0
  for (const row of table.cases) {
    bench.clock.advanceMs(row.atMs - atMs)
    atMs = row.atMs
    if (row.beyond > 0) {
      const used = { check: check(bench, table.limit), units: -row.beyond, chargedAtUs: null }
      await bench.store.refund([used])
    }
    const answer = await decide(bench, table.limit, row.cost)
    const verdict = answer.verdicts[0]?.[0]
    if (verdict === undefined) throw new Error(`at ${row.atMs} ms: expected a verdict; got none`)
    const never = verdict.retryAfterUs === Number.POSITIVE_INFINITY
    const got = {
      allowed: answer.charged === 0,
      remaining: verdict.remaining,
      retryAfterMs: never ? null : Math.ceil(verdict.retryAfterUs / 1000),
      resetAfterMs: Math.ceil(verdict.resetAfterUs / 1000),
    }
    const { allowed, remaining, retryAfterMs, resetAfterMs } = row
    same(got, { allowed, remaining, retryAfterMs, resetAfterMs }, `at ${row.atMs} ms, ${row.because}`)
  }
}
