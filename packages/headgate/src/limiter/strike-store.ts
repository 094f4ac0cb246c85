/** Denials beside a ban become strikes in a store: in the background, after the caller has its answer. */
import type { Strike, Strikes } from '../algorithms/algorithm.js'
import type { Check } from '../check/check.js'
import type { PendingCheck } from '../check/pending-check.js'
import type { Store } from '../store/store.js'

export interface StrikeStoreOptions {
  /** Where bans are kept. */
  readonly store: Pick<Store, 'refund'>
  /** Called when a ban has begun, with how many of its kind there were. */
  onBan(check: Check, level: number): void
  isClosed(): boolean
}

export class StrikeStore {
  readonly #options: StrikeStoreOptions
  #strikes: Strikes<Check> | null = null

  constructor(options: StrikeStoreOptions) {
    this.#options = options
  }

  /** Lets the ban of a policy see a decision. It is made by the policy that has one: no other program bundles it. */
  saw(check: PendingCheck): void {
    const ban = check.plan.limits.find(({ limit }) => limit.algorithm.strikes !== undefined)
    this.#strikes ??= ban?.limit.algorithm.strikes?.((...report) => this.#strike(...report)) ?? null
    this.#strikes?.saw(check)
  }

  /** Nobody waits for it, and a strike that is lost is one denial fewer. */
  #strike(strikes: readonly Strike<Check>[], done: () => void): void {
    const { store, onBan, isClosed } = this.#options
    const refunds = strikes.map(({ check, units, isLocal }) => ({
      check,
      units: -units,
      chargedAtUs: null,
      isLocal,
    }))
    const told = (levels: readonly number[]): void => {
      for (const [index, { check }] of refunds.entries()) {
        const level = levels[index] ?? 0
        if (level > 0) onBan(check, level)
      }
    }
    const levels = isClosed() ? [] : store.refund(refunds)
    if (!(levels instanceof Promise)) {
      told(levels)
      done()
    } else levels.then(told, () => {}).then(done)
  }
}
