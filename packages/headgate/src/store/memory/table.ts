import type { Clock } from '../../clock.js'
import type { Admission } from '../../engine/admission.js'
import type { Algorithm } from '../../engine/algorithm.js'
import { algorithmOf, type State } from '../../engine/algorithms.js'
import { Denial } from '../../engine/denial.js'
import type { Limit } from '../../engine/limit.js'
import { SingleAnswer } from '../../engine/single.js'
import { type Columns, createColumns } from './columns.js'
import { Denials } from './denials.js'

/** How many rows are looked at to find one to forget: enough for a good one, few enough to cost nothing. */
const SAMPLE = 16
const NONE = -1
/** Keys that are not the subject itself begin with a colon, and no subject does. */
const INNER = ':'.charCodeAt(0)

/**
 * The states of one limit, by the key of who they belong to.
 * A turn is one question: the states opened in it are about to be written to and are not forgotten before it ends.
 */
export class Table {
  private readonly algorithm: Algorithm<Limit, State>
  private columns: Columns
  /** By subjects as they come, and apart from them by keys of ours: what is no subject must not be found as one. */
  private rows = new Map<string, number>()
  private innerRows = new Map<string, number>()
  private keys: (string | undefined)[] = []
  /** The usual numbers of a row. */
  private readonly limit: Limit
  /** The numbers of rows that have others: tiers and overrides share a table, and a row is at its own limit. */
  private otherLimits = new Map<number, Limit>()
  /** The usual numbers while no row has others. */
  private onlyLimit: Limit | null
  private free: number[] = []
  private denials = new Denials()
  private readonly opened: number[] = []
  private openedCount = 0
  private turn = 0
  private hand = 0

  constructor(limit: Limit) {
    this.limit = limit
    this.onlyLimit = limit
    this.algorithm = algorithmOf(limit)
    this.columns = createColumns(limit)
  }

  get size(): number {
    return this.rows.size + this.innerRows.size
  }

  has(key: string): boolean {
    return this.rowsFor(key).has(key)
  }

  find(key: string): State | undefined {
    const row = this.rowsFor(key).get(key)
    if (row === undefined) return undefined
    this.denials.forget(row)
    return this.columns.view(row)
  }

  /** Finds a key to write to in this turn. */
  open(key: string, limit: Limit, turn: number): State | undefined {
    const row = this.rowsFor(key).get(key)
    return row === undefined ? undefined : this.use(row, limit, turn)
  }

  /** Finds a key to write to by itself: no other is opened beside it, so none can be forgotten under it. */
  openAlone(key: string, limit: Limit): State | undefined {
    const row = this.rowsFor(key).get(key)
    if (row === undefined) return undefined
    this.denials.forget(row)
    this.noteLimit(row, limit)
    return this.columns.glance(row)
  }

  /**
   * Takes one unit for a subject that is its own key: true with `admission` filled in, or the denial. False, with nothing
   * charged, where there is no such key, and where a clock that stepped back makes it a longer story.
   */
  takeOne(key: string, limit: Limit, clock: Clock, admission: Admission): Denial | boolean {
    const nowUs = clock.nowUs()
    const row = this.rows.get(key)
    if (row === undefined) return false
    const denial = this.denials.find(row, limit, nowUs)
    if (denial !== null) return denial
    if (limit !== this.onlyLimit) this.noteLimit(row, limit)
    return (
      this.algorithm.take(limit, this.columns.glance(row), 1, nowUs, admission) ||
      this.denyOne(row, limit, nowUs)
    )
  }

  /** Adds a key that is not there and takes one unit of it. False, and nothing is added, where none is to be had. */
  takeFirst(key: string, limit: Limit, nowUs: number, admission: Admission): boolean {
    const row = this.addRow(key)
    this.noteLimit(row, limit)
    if (this.algorithm.take(limit, this.columns.view(row), 1, nowUs, admission)) return true
    this.delete(key)
    return false
  }

  private denyOne(row: number, limit: Limit, nowUs: number): Denial | false {
    const algorithm = this.algorithm
    const state = this.columns.glance(row)
    const waitUs = algorithm.waitUs(limit, state, 1, nowUs)
    if (waitUs === 0) return false
    const remaining = algorithm.remaining(limit, state, nowUs)
    const resetAfterUs = algorithm.resetAfterUs(limit, state, nowUs)
    const denial = new Denial(new SingleAnswer(remaining, waitUs, resetAfterUs, null, nowUs), limit, nowUs)
    this.denials.keep(row, denial)
    return denial
  }

  /** Adds a key that is not there, with nothing used, to write to in this turn. */
  add(key: string, limit: Limit, turn: number): State {
    return this.use(this.addRow(key), limit, turn)
  }

  /** Forgets all keys. */
  clear(): void {
    this.columns = createColumns(this.limit)
    this.rows = new Map()
    this.innerRows = new Map()
    this.keys = []
    this.free = []
    this.otherLimits = new Map()
    this.onlyLimit = this.limit
    this.denials = new Denials()
  }

  delete(key: string): boolean {
    const row = this.rowsFor(key).get(key)
    if (row === undefined) return false
    this.rowsFor(key).delete(key)
    this.keys[row] = undefined
    this.columns.clear(row)
    this.denials.forget(row)
    this.noteLimit(row, this.limit)
    this.free.push(row)
    return true
  }

  /** Whether the key has nothing used. */
  isIdle(key: string, nowUs: number): boolean {
    const row = this.rowsFor(key).get(key)
    return row !== undefined && this.isRowIdle(row, nowUs)
  }

  /** Whether `forgetOne` would find a key. */
  canForget(nowUs: number, turn: number): boolean {
    return this.forgettable(nowUs, turn) !== NONE
  }

  /**
   * Forgets one key: one that has nothing used if the sample holds any, else the one that has most left.
   * Never one that is at its limit: a client must not get free by making others be remembered. Returns whether a key
   * was found. A hand that goes round the rows makes every row come up in turn, without a sweep.
   */
  forgetOne(nowUs: number, turn: number): boolean {
    const row = this.forgettable(nowUs, turn)
    this.hand = row === NONE ? this.rowAfterHand(SAMPLE) : row
    return row !== NONE && this.delete(this.keys[row] as string)
  }

  private forgettable(nowUs: number, turn: number): number {
    let best = NONE
    let bestRemaining = 0
    const looks = Math.min(SAMPLE, this.keys.length)
    for (let look = 1; look <= looks; look++) {
      const row = this.rowAfterHand(look)
      if (this.keys[row] === undefined || this.isOpened(row, turn)) continue
      const limit = this.limitOf(row)
      const left = this.algorithm.remaining(limit, this.columns.view(row), nowUs)
      if (left >= limit.limit && this.isRowIdle(row, nowUs)) return row
      if (left > bestRemaining) {
        best = row
        bestRemaining = left
      }
    }
    return best
  }

  private rowsFor(key: string): Map<string, number> {
    return key.charCodeAt(0) === INNER ? this.innerRows : this.rows
  }

  private addRow(key: string): number {
    const row = this.free.pop() ?? this.keys.length
    this.keys[row] = key
    this.rowsFor(key).set(key, row)
    return row
  }

  private use(row: number, limit: Limit, turn: number): State {
    if (turn !== this.turn) {
      this.turn = turn
      this.openedCount = 0
    }
    this.opened[this.openedCount++] = row
    this.denials.forget(row)
    this.noteLimit(row, limit)
    return this.columns.view(row)
  }

  /** Under other numbers the key may have been denied, and be so for longer when these have admitted it. */
  private noteLimit(row: number, limit: Limit): void {
    if (limit === this.limitOf(row)) return
    if (limit === this.limit) this.otherLimits.delete(row)
    else this.otherLimits.set(row, limit)
    this.onlyLimit = this.otherLimits.size === 0 ? this.limit : null
    this.denials.forget(row)
  }

  private limitOf(row: number): Limit {
    return this.otherLimits.get(row) ?? this.limit
  }

  private isOpened(row: number, turn: number): boolean {
    if (turn !== this.turn) return false
    for (let index = 0; index < this.openedCount; index++) if (this.opened[index] === row) return true
    return false
  }

  private rowAfterHand(steps: number): number {
    return (this.hand + steps) % Math.max(1, this.keys.length)
  }

  private isRowIdle(row: number, nowUs: number): boolean {
    const limit = this.limitOf(row)
    return this.algorithm.resetAfterUs(limit, this.columns.view(row), nowUs) === 0
  }
}
