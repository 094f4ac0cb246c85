import type { Check, Credit, Credited, Refund, Renewal } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import type { NamedLimit, Plan } from '../../check/plan.js'
import { wholeNumber } from '../../errors/whole-number.js'
import { type Clock, systemClock } from '../../time/clock.js'
import type { ControlStore } from '../control-store.js'
import type { Store } from '../store.js'
import { EvictedKeys } from './evicted-keys.js'
import { memoryControl } from './memory-control.js'
import { scratchOutcome, Table, type TableOwner } from './table.js'

export interface MemoryStoreOptions {
  /** The most states kept; one for each subject, scope and limit. Default 100,000. */
  readonly maxKeys?: number
  readonly clock?: Clock
}

const DEFAULT_MAX_KEYS = 100_000
/** A Map holds 2^24 entries at most. */
const MAX_MAX_KEYS = 2 ** 24 - 1_000

/**
 * Creates the embedded store: limits of this process, kept in this process, decided by the algorithms themselves. Bounded
 * without timers or sweeps. When full it first evicts keys with nothing used, then those with the most left. When all it
 * sees are at their limit, it keeps only that fact about one (`evicted-keys.ts`), so that newcomers are served and
 * no caller at a limit gets free.
 *
 * @example
 * const limiter = createLimiter({ store: memoryStore({ maxKeys: 10_000 }), policies })
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  return new MemoryStore(options)
}

/** A store whose states are in this process. */
export class MemoryStore implements Store, TableOwner {
  readonly source = 'memory'
  readonly clock: Clock
  readonly control: ControlStore
  keyCount = 0
  evicted: EvictedKeys | null = null
  readonly #maxKeys: number
  readonly #tables = new Map<string, Table>()
  readonly #scratch = scratchOutcome()
  readonly #credited = new CreditedIds()
  /** The rows of the check being decided, if it has several limits. */
  readonly #pinnedTables: Table[] = []
  readonly #pinnedRows: number[] = []
  #pinned = 0

  constructor(options: MemoryStoreOptions = {}) {
    const { maxKeys = DEFAULT_MAX_KEYS, clock = systemClock } = options
    this.#maxKeys = wholeNumber(maxKeys, 'maxKeys', 1, MAX_MAX_KEYS)
    this.clock = clock
    this.control = memoryControl(this.clock)
  }

  /** The states kept. */
  get size(): number {
    return this.keyCount
  }

  decide(check: PendingCheck): void {
    this.charge(check, check.plan, check.atUs)
    check.settle('memory')
  }

  /**
   * Charges the first alternative that fits, by the limits of `plan`, and writes the numbers into the check. One limit
   * has nothing else to wait for, so looking and charging are one pass. The rest is in functions of its own, because V8
   * inlines only so much code, and what it does not inline costs a fifth of a decision.
   */
  charge(check: PendingCheck, plan: Plan, nowUs: number): void {
    if (plan.isSingle) this.#chargeSingle(check, plan.limits[0] as NamedLimit, nowUs)
    else this.#chargeFirstThatFits(check, plan, nowUs)
  }

  #chargeSingle(check: PendingCheck, named: NamedLimit, nowUs: number): void {
    const { limit } = named
    const { more } = check
    const key = more === null ? check.subject : keyOf(check.subject, more.scope)
    const units = more === null ? named.unitsOf(check.cost) : check.unitsOf(0)
    this.#tableNamed(named.name, named).decide(key, limit, units, nowUs, !check.isPeek, check)
    check.charged = check.waitUs === 0 ? 0 : -1
  }

  #chargeFirstThatFits(check: PendingCheck, plan: Plan, nowUs: number): void {
    check.charged = -1
    for (let alternative = 0; alternative < plan.ends.length; alternative++) {
      if (!this.#chargeAll(check, plan, alternative, nowUs)) continue
      check.charged = alternative
      break
    }
    for (let index = plan.shadowFrom; index < plan.limits.length; index++) {
      this.#decideOne(check, plan, index, nowUs, !check.isPeek)
    }
    this.#pinned = 0
  }

  /** All or none: every limit is looked at before any is charged. */
  #chargeAll(check: PendingCheck, plan: Plan, alternative: number, nowUs: number): boolean {
    const from = plan.start(alternative)
    const end = plan.ends[alternative] as number
    let fits = true
    for (let index = from; index < end; index++) {
      if (!this.#decideOne(check, plan, index, nowUs, false)) fits = false
    }
    if (!fits || check.isPeek) return fits
    for (let index = from; index < end; index++) this.#decideOne(check, plan, index, nowUs, true)
    return true
  }

  #decideOne(check: PendingCheck, plan: Plan, index: number, nowUs: number, mayCharge: boolean): boolean {
    const named = plan.limits[index] as NamedLimit
    const key = keyOf(check.subjectOf(index), check.scopeOf(index))
    this.#tableNamed(named.name, named).decidePinned(
      key,
      named.limit,
      check.unitsOf(index),
      nowUs,
      mayCharge,
      check,
    )
    check.keep(index)
    return check.waitUs === 0
  }

  refund(refunds: readonly Refund[]): readonly number[] {
    const nowUs = this.clock.nowUs()
    return refunds.map(({ check, units, chargedAtUs, heldSinceUs }) => {
      const { limit } = check
      // What was used already is charged also to a key that was evicted.
      return (
        this.#change(check, nowUs, units < 0, state =>
          limit.algorithm.refund(limit, state, units, chargedAtUs, nowUs, heldSinceUs),
        ) ?? 0
      )
    })
  }

  /** Makes a state one of which nothing is left until then. */
  exhaust(check: Check, untilUs: number): void {
    const { limit } = check
    const nowUs = this.clock.nowUs()
    this.#change(check, nowUs, true, state =>
      Object.assign(state as object, limit.algorithm.usedUp(limit, untilUs, nowUs)),
    )
  }

  renew(renewals: readonly Renewal[]): readonly boolean[] {
    const nowUs = this.clock.nowUs()
    return renewals.map(({ check, takenAtUs }) => {
      const { limit, cost } = check
      const { algorithm } = limit
      if (algorithm.renew === undefined) return false
      const hold = (state: unknown): boolean =>
        algorithm.renew?.(limit, state, cost, takenAtUs, nowUs) ?? false
      return this.#change(check, nowUs, true, hold) ?? false
    })
  }

  credit({ check, units, id, idForMs, isLasting }: Credit): Credited {
    const nowUs = this.clock.nowUs()
    const { limit } = check
    const { account } = limit.algorithm
    if (account === undefined) throw new TypeError(`${limit.id} takes no credits`)
    const mark = JSON.stringify([check.subject, check.scope, check.name, id])
    const isAdded = units > 0 && !this.#credited.has(mark, nowUs)
    const usage = this.#change(check, nowUs, isAdded, state => {
      if (isAdded) account.credit(limit, state, units, isLasting, nowUs)
      return account.usage(limit, state, nowUs)
    })
    if (isAdded) this.#credited.add(mark, nowUs, idForMs * 1_000)
    return { usage: usage ?? account.usage(limit, limit.algorithm.empty(), nowUs), isAdded }
  }

  reset(checks: readonly Check[]): void {
    const nowUs = this.clock.nowUs()
    for (const check of checks) {
      const { limit } = check
      this.#change(check, nowUs, false, state => limit.algorithm.reset(limit, state, nowUs))
    }
  }

  close(): void {
    for (const table of this.#tables.values()) table.clear()
    this.evicted = null
    this.keyCount = 0
  }

  makeRoom(table: Table, nowUs: number): void {
    while (this.keyCount >= this.#maxKeys) {
      let crowded = table
      for (const other of this.#tables.values()) if (other.size > crowded.size) crowded = other
      if (crowded.evictOne(nowUs, this.#scratch)) continue
      if (crowded !== table && table.evictOne(nowUs, this.#scratch)) continue
      this.evicted ??= new EvictedKeys(this.#maxKeys)
      // Nothing may go only if there are fewer keys than limits in one check: then these few are more than `maxKeys`.
      if (!crowded.evictNext(nowUs, this.#scratch, this.evicted)) return
    }
  }

  isPinned(table: Table, row: number): boolean {
    for (let index = 0; index < this.#pinned; index++) {
      if (this.#pinnedRows[index] === row && this.#pinnedTables[index] === table) return true
    }
    return false
  }

  pin(table: Table, row: number): void {
    this.#pinnedTables[this.#pinned] = table
    this.#pinnedRows[this.#pinned++] = row
  }

  #change<Result>(
    check: Check,
    nowUs: number,
    adds: boolean,
    change: (state: unknown) => Result,
  ): Result | null {
    const { name, limit, subject, scope } = check
    const table = adds || this.evicted !== null ? this.#tableNamed(name, check) : this.#tables.get(name)
    return table?.change(keyOf(subject, scope), limit, nowUs, adds, change) ?? null
  }

  #tableNamed(name: string, { limit }: Pick<Check, 'limit'>): Table {
    let table = this.#tables.get(name)
    if (table === undefined) {
      table = new Table(name, limit, this)
      this.#tables.set(name, table)
    }
    return table
  }
}

/** The ids of credits, for as long as they are remembered. Only operators add any. */
class CreditedIds {
  readonly #untilUs = new Map<string, number>()

  has(mark: string, nowUs: number): boolean {
    return (this.#untilUs.get(mark) ?? 0) > nowUs
  }

  add(mark: string, nowUs: number, forUs: number): void {
    // The oldest come first.
    for (const [known, untilUs] of this.#untilUs) {
      if (untilUs > nowUs) break
      this.#untilUs.delete(known)
    }
    this.#untilUs.set(mark, nowUs + forUs)
  }
}

/**
 * The key of a state within its table. The subject is the key, so that the common scope costs no new string. Another
 * scope precedes it with its length, after a colon, with which no subject begins: no id can be written to look like a
 * scope.
 */
function keyOf(subject: string, scope: string): string {
  return scope === 'global' ? subject : `:${scope.length}:${scope}${subject}`
}
