import { algorithmOf, type State } from '../../engine/algorithms.js'
import type { Limit } from '../../engine/limit.js'
import { type Columns, createColumns } from './columns.js'

/** How many rows are looked at to find one to forget: enough for a good one, few enough to cost nothing. */
const SAMPLE = 16
const NONE = -1

/**
 * The states of one limit, by the key of who they belong to.
 * A turn is one question: the states opened in it are about to be written to and are not forgotten before it ends.
 */
export class Table {
  readonly #columns: Columns
  readonly #rows = new Map<string, number>()
  readonly #keys: (string | undefined)[] = []
  /** The usual numbers of a row. */
  readonly #limit: Limit
  /** The numbers of rows that have others: tiers and overrides share a table, and a row is at its own limit. */
  readonly #otherLimits = new Map<number, Limit>()
  readonly #free: number[] = []
  readonly #opened: number[] = []
  #openedCount = 0
  #turn = 0
  #hand = 0

  constructor(limit: Limit) {
    this.#limit = limit
    this.#columns = createColumns(limit)
  }

  get size(): number {
    return this.#rows.size
  }

  find(key: string): State | undefined {
    const row = this.#rows.get(key)
    return row === undefined ? undefined : this.#columns.view(row)
  }

  /** Finds a key to write to in this turn. */
  open(key: string, limit: Limit, turn: number): State | undefined {
    const row = this.#rows.get(key)
    return row === undefined ? undefined : this.#use(row, limit, turn)
  }

  /** Finds a key to write to by itself: no other is opened beside it, so none can be forgotten under it. */
  openAlone(key: string, limit: Limit): State | undefined {
    const row = this.#rows.get(key)
    if (row === undefined) return undefined
    this.#noteLimit(row, limit)
    return this.#columns.glance(row)
  }

  /** Adds a key that is not there, with nothing used, to write to in this turn. */
  add(key: string, limit: Limit, turn: number): State {
    const row = this.#free.pop() ?? this.#keys.length
    this.#keys[row] = key
    this.#rows.set(key, row)
    return this.#use(row, limit, turn)
  }

  delete(key: string): boolean {
    const row = this.#rows.get(key)
    if (row === undefined) return false
    this.#rows.delete(key)
    this.#keys[row] = undefined
    this.#columns.clear(row)
    this.#otherLimits.delete(row)
    this.#free.push(row)
    return true
  }

  /** Whether the key has nothing used. */
  isIdle(key: string, nowUs: number): boolean {
    const row = this.#rows.get(key)
    return row !== undefined && this.#isIdle(row, nowUs)
  }

  /** Whether `forgetOne` would find a key. */
  canForget(nowUs: number, turn: number): boolean {
    return this.#forgettable(nowUs, turn) !== NONE
  }

  /**
   * Forgets one key: one that has nothing used if the sample holds any, else the one that has most left.
   * Never one that is at its limit: a client must not get free by making others be remembered. Returns whether a key
   * was found. A hand that goes round the rows makes every row come up in turn, without a sweep.
   */
  forgetOne(nowUs: number, turn: number): boolean {
    const row = this.#forgettable(nowUs, turn)
    this.#hand = row === NONE ? this.#rowAfterHand(SAMPLE) : row
    return row !== NONE && this.delete(this.#keys[row] as string)
  }

  #forgettable(nowUs: number, turn: number): number {
    let best = NONE
    let bestRemaining = 0
    const looks = Math.min(SAMPLE, this.#keys.length)
    for (let look = 1; look <= looks; look++) {
      const row = this.#rowAfterHand(look)
      if (this.#keys[row] === undefined || this.#isOpened(row, turn)) continue
      const limit = this.#limitOf(row)
      const left = algorithmOf(limit).remaining(limit, this.#columns.view(row), nowUs)
      if (left >= limit.limit && this.#isIdle(row, nowUs)) return row
      if (left > bestRemaining) {
        best = row
        bestRemaining = left
      }
    }
    return best
  }

  #use(row: number, limit: Limit, turn: number): State {
    if (turn !== this.#turn) {
      this.#turn = turn
      this.#openedCount = 0
    }
    this.#opened[this.#openedCount++] = row
    this.#noteLimit(row, limit)
    return this.#columns.view(row)
  }

  #noteLimit(row: number, limit: Limit): void {
    if (limit !== this.#limit) this.#otherLimits.set(row, limit)
    else if (this.#otherLimits.size > 0) this.#otherLimits.delete(row)
  }

  #limitOf(row: number): Limit {
    return this.#otherLimits.get(row) ?? this.#limit
  }

  #isOpened(row: number, turn: number): boolean {
    if (turn !== this.#turn) return false
    for (let index = 0; index < this.#openedCount; index++) if (this.#opened[index] === row) return true
    return false
  }

  #rowAfterHand(steps: number): number {
    return (this.#hand + steps) % Math.max(1, this.#keys.length)
  }

  #isIdle(row: number, nowUs: number): boolean {
    const limit = this.#limitOf(row)
    return algorithmOf(limit).resetAfterUs(limit, this.#columns.view(row), nowUs) === 0
  }
}
