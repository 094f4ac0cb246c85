import {
  type Algorithm,
  type Limit,
  NOT_CHARGED,
  type Outcome,
  type Rows,
} from '../../algorithms/algorithm.js'
import type { EvictedKeys } from './evicted-keys.js'

/** How many rows are sampled to find one to evict: enough for a good one, few enough to cost nothing. */
const SAMPLE = 16
const NO_ROW = -1

/** The store that a table is part of: it bounds the keys of all tables together. */
export interface TableOwner {
  keyCount: number
  /** Evicts a key if the store is full. */
  makeRoom(table: Table, nowUs: number): void
  /** Whether the check being decided is about this row, which must not be evicted under it. */
  isPinned(table: Table, row: number): boolean
  pin(table: Table, row: number): void
  /** Null while no key was evicted at its limit. */
  readonly evicted: EvictedKeys | null
}

/** The states of one limit in memory, by key. Tiers and overrides share a table, so each row has its own numbers. */
export class Table {
  private readonly algorithm: Algorithm
  private rowOf = new Map<string, number>()
  private keys: (string | undefined)[] = []
  /** Rows of keys that were deleted, to be given to new ones. */
  private free: number[] = []
  private rows: Rows
  /** The numbers of rows that were last asked with others than the usual ones. */
  private readonly otherLimits = new Map<number, Limit>()
  private hand = 0

  constructor(
    readonly name: string,
    private readonly usual: Limit,
    readonly owner: TableOwner,
  ) {
    this.algorithm = usual.algorithm
    this.rows = this.algorithm.rows()
  }

  get size(): number {
    return this.rowOf.size
  }

  /** Decides on the state of a key alone. A key to which nothing is charged is not added. */
  decide(key: string, limit: Limit, units: number, nowUs: number, mayCharge: boolean, out: Outcome): void {
    const row = this.rowOf.get(key)
    if (row === undefined) {
      this.decideNew(key, limit, units, nowUs, mayCharge, out)
      return
    }
    if (limit !== this.usual || this.otherLimits.size > 0) this.noteLimit(row, limit)
    this.algorithm.decide(limit, this.rows.at(row), units, nowUs, mayCharge, out)
  }

  /** The same for one of several limits: its row stays until the check is decided. */
  decidePinned(
    key: string,
    limit: Limit,
    units: number,
    nowUs: number,
    mayCharge: boolean,
    out: Outcome,
  ): void {
    this.decide(key, limit, units, nowUs, mayCharge, out)
    const row = this.rowOf.get(key)
    if (row !== undefined) this.owner.pin(this, row)
  }

  private decideNew(
    key: string,
    limit: Limit,
    units: number,
    nowUs: number,
    mayCharge: boolean,
    out: Outcome,
  ): void {
    const { algorithm } = this
    const former = this.evictedState(key, limit, nowUs)
    const charges = mayCharge && units > 0 && algorithm.strikes === undefined
    // Looked at first where it may be denied, because a denied newcomer must not evict anybody.
    if (former !== null || !charges || units > limit.limit) {
      algorithm.decide(limit, former ?? algorithm.empty(), units, nowUs, false, out)
      if (!charges || out.waitUs > 0) return
    }
    algorithm.decide(limit, this.add(key, limit, former, nowUs), units, nowUs, true, out)
  }

  /** Runs `change` on the state of a key. One that has no row is added if `adds`, or if it was evicted at its limit. */
  change<Result>(
    key: string,
    limit: Limit,
    nowUs: number,
    adds: boolean,
    change: (state: unknown) => Result,
  ): Result | null {
    const row = this.rowOf.get(key)
    if (row !== undefined) return change(this.rows.at(row))
    const former = this.evictedState(key, limit, nowUs)
    if (!adds && former === null) return null
    const result = change(this.add(key, limit, former, nowUs))
    const added = this.rowOf.get(key) as number
    if (this.algorithm.isUncharged(limit, this.rows.at(added), nowUs) && former === null) this.delete(added)
    return result
  }

  clear(): void {
    this.rowOf = new Map()
    this.keys = []
    this.free = []
    this.otherLimits.clear()
    this.rows = this.algorithm.rows()
  }

  /**
   * Evicts a key with nothing used if the sample has any, else the one with the most left. Never one at its limit:
   * that is for `evictNext`, which remembers it.
   */
  evictOne(nowUs: number, out: Outcome): boolean {
    this.passFreeRows()
    const { rows, keys } = this
    let best = NO_ROW
    let mostLeft = 0
    const looks = Math.min(SAMPLE, keys.length)
    for (let look = 1; look <= looks; look++) {
      const row = this.rowAfterHand(look)
      if (!this.mayGo(row)) continue
      this.algorithm.decide(this.limitOf(row), rows.at(row), 0, nowUs, false, out)
      if (out.resetAfterUs === 0) {
        best = row
        break
      }
      if (out.remaining > mostLeft) {
        mostLeft = out.remaining
        best = row
      }
    }
    this.hand = best === NO_ROW ? this.rowAfterHand(SAMPLE) : best
    if (best === NO_ROW) return false
    this.delete(best)
    return true
  }

  /** Evicts the next key whatever it has left, and remembers until when one at its limit counts. */
  evictNext(nowUs: number, out: Outcome, evicted: EvictedKeys): boolean {
    for (let look = 1; look <= this.keys.length; look++) {
      const row = this.rowAfterHand(look)
      if (!this.mayGo(row)) continue
      this.hand = row
      this.algorithm.decide(this.limitOf(row), this.rows.at(row), 0, nowUs, false, out)
      if (out.remaining === 0) evicted.note(this.name, this.keys[row] as string, nowUs + out.resetAfterUs)
      this.delete(row)
      return true
    }
    return false
  }

  private add(key: string, limit: Limit, former: unknown, nowUs: number): unknown {
    this.owner.makeRoom(this, nowUs)
    const row = this.free.pop() ?? this.keys.length
    this.keys[row] = key
    this.rowOf.set(key, row)
    this.owner.keyCount++
    if (limit !== this.usual) this.otherLimits.set(row, limit)
    const state = this.rows.create(row)
    if (former === null) return state
    this.rows.write(row, former)
    return this.rows.at(row)
  }

  /** A stand-in for the state of a key that may have been evicted at its limit; null for any other. */
  private evictedState(key: string, limit: Limit, nowUs: number): unknown {
    const untilUs = this.owner.evicted?.untilUs(this.name, key) ?? 0
    return untilUs > nowUs ? this.algorithm.usedUp(limit, untilUs, nowUs) : null
  }

  private delete(row: number): void {
    this.rowOf.delete(this.keys[row] as string)
    this.keys[row] = undefined
    this.free.push(row)
    this.rows.clear(row)
    this.otherLimits.delete(row)
    this.owner.keyCount--
  }

  private limitOf(row: number): Limit {
    return this.otherLimits.get(row) ?? this.usual
  }

  private noteLimit(row: number, limit: Limit): void {
    if (limit === this.usual) this.otherLimits.delete(row)
    else this.otherLimits.set(row, limit)
  }

  private mayGo(row: number): boolean {
    return this.keys[row] !== undefined && !this.owner.isPinned(this, row)
  }

  /** Freed rows are adjacent, and a sample of them would find nothing. */
  private passFreeRows(): void {
    for (let look = 0; look < this.keys.length; look++) {
      const next = this.rowAfterHand(1)
      if (this.keys[next] !== undefined) return
      this.hand = next
    }
  }

  private rowAfterHand(steps: number): number {
    return (this.hand + steps) % Math.max(1, this.keys.length)
  }
}

/** A result that nobody reads. */
export function scratchOutcome(): Outcome {
  return { waitUs: 0, remaining: 0, resetAfterUs: 0, chargedAtUs: NOT_CHARGED }
}
