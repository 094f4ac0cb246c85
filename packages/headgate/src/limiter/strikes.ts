/** Denials beside a ban become strikes in a store: in the background, after the caller has its answer. */
import type { ReportStrikes, Strikes } from '../algorithms/algorithm.js'
import type { Check } from '../check/check.js'
import type { PendingCheck } from '../check/pending-check.js'
import type { Store } from '../store/store.js'

export interface StrikeOptions {
  /** Where bans are kept. */
  readonly store: Pick<Store, 'refund'>
  /** Called when a ban has begun, with its step. */
  onBan(check: Check, level: number): void
  isClosed(): boolean
}

/** Returns what lets the ban of a policy see a decision. */
export function strikesIn({ store, onBan, isClosed }: StrikeOptions): (check: PendingCheck) => void {
  // Made by the first policy that has a ban: no other program bundles it.
  let strikes: Strikes<Check> | null = null

  /** In the background. If it fails, the strikes are not counted. */
  const report: ReportStrikes<Check> = (found, done) => {
    const told = (levels: readonly number[]): void => {
      for (const [index, { check }] of found.entries())
        if ((levels[index] ?? 0) > 0) onBan(check, levels[index] as number)
    }
    const levels = isClosed()
      ? []
      : store.refund(found.map(strike => ({ ...strike, units: -strike.units, chargedAtUs: null })))
    if (levels instanceof Promise) levels.then(told, () => {}).then(done)
    else {
      told(levels)
      done()
    }
  }

  return check => {
    for (const { limit } of check.plan.limits) strikes ??= limit.algorithm.strikes?.(report) ?? null
    strikes?.saw(check)
  }
}
