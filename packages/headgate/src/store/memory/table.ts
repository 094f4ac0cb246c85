import type { Admission, Algorithm } from '../../engine/algorithm.js'
import { algorithmOf, type State } from '../../engine/algorithms.js'
import { decideAlone } from '../../engine/decide.js'
import type { Limit } from '../../engine/limit.js'
import type { SingleAnswer } from '../../engine/single-question.js'
import { KeptDenial, KeptDenials } from '../../fast-path/kept-denials.js'
import { type Columns, createColumns } from './columns.js'
import type { Forgotten } from './forgotten.js'

/** How many rows are sampled to find one to forget: enough for a good one, few enough to cost nothing. */
const SAMPLE = 16
const NONE = -1
/** Keys that are not the subject itself begin with a colon, and no subject does. */
const INNER = ':'.charCodeAt(0)

/**
 * The states of one limit, by key. A turn is one question: states opened in it are about to be written to and are
 * not forgotten before it ends.
 */
export class Table {
  private readonly algorithm: Algorithm<Limit, State>
  private columns: Columns
  /** Subjects, and apart from them keys of ours: what is not a subject must not be found as one. */
  private rows = new Map<string, number>()
  private innerRows = new Map<string, number>()
  private keys: (string | undefined)[] = []
  /** The usual numbers of a row. */
  private readonly limit: Limit
  /** The numbers of rows that differ: tiers and overrides share a table, and each row has its own limit. */
  private otherLimits = new Map<number, Limit>()
  /** The usual numbers while no row differs. */
  private onlyLimit: Limit | null
  private free: number[] = []
  private denials = new KeptDenials()
  private readonly opened: number[] = []
  /** One for each of them: two checks of a question that meet in a row see what the other has written. */
  private readonly openedStates: State[] = []
  private openedCount = 0
  private turn = 0
  private hand = 0

  constructor(
    readonly name: string,
    limit: Limit,
  ) {
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

  rowOf(key: string): number | undefined {
    return this.rowsFor(key).get(key)
  }

  /**
   * Returns the row of a subject that is its own key. A text written to look like one of our keys finds nothing.
   */
  rowOfSubject(subject: string): number | undefined {
    return this.rows.get(subject)
  }

  /**
   * Takes one unit: returns true with `admission` filled in, or the denial. False if the clock has stepped back.
   */
  takeOne(row: number, limit: Limit, nowUs: number, admission: Admission): KeptDenial | boolean {
    const denial = this.denials.find(row, limit, nowUs)
    if (denial !== null) return denial
    return this.take(row, limit, 1, nowUs, admission) || this.denyOne(row, limit, nowUs)
  }

  /**
   * Charges a row if the cost fits; returns false, with nothing changed, if not or if the clock has stepped back.
   * The row must have no kept denial.
   */
  private take(row: number, limit: Limit, cost: number, nowUs: number, admission: Admission): boolean {
    if (limit !== this.onlyLimit) this.noteLimit(row, limit)
    return this.algorithm.take(limit, this.columns.glance(row), cost, nowUs, admission)
  }

  /** Charges a row alone, with no other state open. */
  takeAlone(row: number, limit: Limit, cost: number, nowUs: number, admission: Admission): boolean {
    this.denials.forget(row)
    return this.take(row, limit, cost, nowUs, admission)
  }

  /** Answers for a row that `take` did not charge, or to which nothing is to be charged. */
  decideAlone(row: number, limit: Limit, cost: number, nowUs: number): SingleAnswer {
    this.noteLimit(row, limit)
    return decideAlone(this.algorithm, limit, this.columns.glance(row), cost, nowUs)
  }

  /**
   * Adds a key in this state (by default with nothing used) and charges it. Adds nothing if the cost does not fit.
   */
  takeFirst(
    { key, state, limit }: { key: string; state: State | null; limit: Limit },
    cost: number,
    nowUs: number,
    admission: Admission,
  ): boolean {
    const row = this.addRow(key)
    this.columns.view(row)
    if (state !== null) this.columns.write(row, state)
    if (this.take(row, limit, cost, nowUs, admission)) return true
    this.delete(key)
    return false
  }

  /** Denies a row one unit and keeps the denial. False if the clock has stepped back and it may be admitted. */
  private denyOne(row: number, limit: Limit, nowUs: number): KeptDenial | false {
    const { algorithm } = this
    if (algorithm.waitUs(limit, this.columns.glance(row), 1, nowUs) === 0) return false
    const answer = decideAlone(algorithm, limit, this.columns.glance(row), 1, nowUs)
    const denial = new KeptDenial(answer, limit, nowUs)
    this.denials.keep(row, denial)
    return denial
  }

  /** Adds a new key with nothing used, to write to in this turn. */
  add(key: string, limit: Limit, turn: number, state: State | null = null): State {
    const row = this.addRow(key)
    if (state !== null) this.columns.write(row, state)
    return this.use(row, limit, turn)
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
    this.denials = new KeptDenials()
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

  /** Forgets what a key has used, but keeps the fact of the reset. */
  reset(key: string, limit: Limit, nowUs: number): void {
    const row = this.rowsFor(key).get(key)
    if (row === undefined) return
    this.denials.forget(row)
    this.algorithm.reset(limit, this.columns.glance(row), nowUs)
  }

  /**
   * Whether nothing was charged to a key added in this turn. Places are counted whatever they look like: to a check
   * with a shorter `holdFor` they seem to be of another time.
   */
  isUncharged(key: string, nowUs: number): boolean {
    const row = this.rowsFor(key).get(key)
    if (row === undefined) return false
    const state = this.columns.view(row)
    return 'places' in state ? state.places.length === 0 : this.isRowIdle(row, nowUs)
  }

  /**
   * Forgets one key: one with nothing used if the sample has any, else the one with the most left. Never one at its
   * limit: that is for `forgetNext`, which keeps it from getting free through newcomers. Returns whether a key was
   * found. A cursor goes round the rows, so that every row comes up in turn without a sweep.
   */
  forgetOne(nowUs: number, turn: number): boolean {
    this.passFreeRows()
    const row = this.forgettable(nowUs, turn)
    this.hand = row === NONE ? this.rowAfterHand(SAMPLE) : row
    return row !== NONE && this.delete(this.keys[row] as string)
  }

  /** Forgets the next key whatever it has left, and notes one that has nothing. Returns whether there was a key. */
  forgetNext(nowUs: number, turn: number, forgotten: Forgotten): boolean {
    for (let look = 1; look <= this.keys.length; look++) {
      const row = this.rowAfterHand(look)
      const key = this.keys[row]
      if (key === undefined || this.isOpened(row, turn)) continue
      const limit = this.limitOf(row)
      const state = this.columns.view(row)
      const isAtLimit = this.algorithm.remaining(limit, state, nowUs) === 0
      if (isAtLimit) forgotten.note(this.name, key, nowUs + this.algorithm.resetAfterUs(limit, state, nowUs))
      this.hand = row
      return this.delete(key)
    }
    return false
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
    this.denials.forget(row)
    this.noteLimit(row, limit)
    for (let index = 0; index < this.openedCount; index++) {
      if (this.opened[index] === row) return this.openedStates[index] as State
    }
    const state = this.columns.view(row)
    this.opened[this.openedCount] = row
    this.openedStates[this.openedCount++] = state
    return state
  }

  /** Under other numbers the key may have been denied, and for longer than these numbers say. */
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

  private isRowIdle(row: number, nowUs: number): boolean {
    const limit = this.limitOf(row)
    return this.algorithm.resetAfterUs(limit, this.columns.view(row), nowUs) === 0
  }
}
