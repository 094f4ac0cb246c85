import type { Limit } from '../../algorithms/algorithm.js'
import { decideAlone } from '../../engine/decide.js'
import {
  type Admission,
  type Algorithm,
  algorithmOf,
  type OpenRows,
  rowsOf,
  type State,
} from '../../engine/legacy-algorithm.js'
import type { SingleAnswer } from '../../engine/single-question.js'
import { KeptDenial, KeptDenials } from '../../fast-path/kept-denials.js'
import { type EvictableRows, Eviction, NO_ROW } from './eviction.js'
import type { Forgotten } from './forgotten.js'
import { OpenedRows } from './opened-rows.js'
import { RowKeys } from './row-keys.js'
import { RowLimits } from './row-limits.js'

/**
 * The states of one limit, by key. A turn is one question: states opened in it are about to be written to and are
 * not forgotten before it ends.
 */
export class Table implements EvictableRows {
  private readonly algorithm: Algorithm<Limit, State>
  private columns: OpenRows
  private keys = new RowKeys()
  private limits: RowLimits
  private denials = new KeptDenials()
  private readonly opened = new OpenedRows()
  private readonly eviction = new Eviction(this)

  constructor(
    readonly name: string,
    limit: Limit,
  ) {
    this.algorithm = algorithmOf(limit)
    this.columns = rowsOf(limit)
    this.limits = new RowLimits(limit)
  }

  get size(): number {
    return this.keys.size
  }

  rowOf(key: string): number | undefined {
    return this.keys.rowOf(key)
  }

  rowOfSubject(subject: string): number | undefined {
    return this.keys.rowOfSubject(subject)
  }

  find(key: string): State | undefined {
    const row = this.keys.rowOf(key)
    if (row === undefined) return undefined
    this.denials.forget(row)
    return this.columns.view(row)
  }

  /** Finds a key to write to in this turn. */
  open(key: string, limit: Limit, turn: number): State | undefined {
    const row = this.keys.rowOf(key)
    return row === undefined ? undefined : this.use(row, limit, turn)
  }

  /** Adds a new key in this state (by default with nothing used), to write to in this turn. */
  add(key: string, limit: Limit, turn: number, state: State | null = null): State {
    const row = this.keys.add(key)
    if (state !== null) this.columns.write(row, state)
    return this.use(row, limit, turn)
  }

  /**
   * Takes one unit: returns true with `admission` filled in, or the denial. False if the clock has stepped back.
   */
  takeOne(row: number, limit: Limit, nowUs: number, admission: Admission): KeptDenial | boolean {
    const denial = this.denials.find(row, limit, nowUs)
    if (denial !== null) return denial
    return this.take(row, limit, 1, nowUs, admission) || this.denyOne(row, limit, nowUs)
  }

  /** Charges a row alone, with no other state open. */
  takeAlone(row: number, limit: Limit, cost: number, nowUs: number, admission: Admission): boolean {
    this.denials.forget(row)
    return this.take(row, limit, cost, nowUs, admission)
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
    const row = this.keys.add(key)
    // Makes the page of the row, which `glance` relies on.
    this.columns.view(row)
    if (state !== null) this.columns.write(row, state)
    if (this.take(row, limit, cost, nowUs, admission)) return true
    this.deleteRow(row)
    return false
  }

  /** Answers for a row that `take` did not charge, or to which nothing is to be charged. */
  decideAlone(row: number, limit: Limit, cost: number, nowUs: number): SingleAnswer {
    this.noteLimit(row, limit)
    return decideAlone(this.algorithm, limit, this.columns.at(row), cost, nowUs)
  }

  /** Forgets what a key has used, but keeps the fact of the reset. */
  reset(key: string, limit: Limit, nowUs: number): void {
    const row = this.keys.rowOf(key)
    if (row === undefined) return
    this.denials.forget(row)
    this.algorithm.reset(limit, this.columns.at(row), nowUs)
  }

  delete(key: string): boolean {
    const row = this.keys.rowOf(key)
    return row !== undefined && this.deleteRow(row)
  }

  /** Forgets all keys. */
  clear(): void {
    const { usual } = this.limits
    this.columns = rowsOf(usual)
    this.keys = new RowKeys()
    this.limits = new RowLimits(usual)
    this.denials = new KeptDenials()
  }

  /** Whether nothing was charged to a key added in this turn. */
  isUncharged(key: string, nowUs: number): boolean {
    const row = this.keys.rowOf(key)
    if (row === undefined) return false
    const limit = this.limits.of(row)
    return limit.algorithm.isUncharged(limit, this.columns.view(row), nowUs)
  }

  /** Forgets a key that is not at its limit. Returns whether one was found. */
  forgetOne(nowUs: number, turn: number): boolean {
    const row = this.eviction.choose(nowUs, turn)
    return row !== NO_ROW && this.deleteRow(row)
  }

  /** Forgets the next key whatever it has left, and notes one that has nothing. Returns whether there was a key. */
  forgetNext(nowUs: number, turn: number, forgotten: Forgotten): boolean {
    const row = this.eviction.chooseNext(turn)
    if (row === NO_ROW) return false
    const key = this.keys.keyAt(row) as string
    const isAtLimit = this.remaining(row, nowUs) === 0
    if (isAtLimit) forgotten.note(this.name, key, nowUs + this.resetAfterUs(row, nowUs))
    return this.deleteRow(row)
  }

  get rowCount(): number {
    return this.keys.rowCount
  }

  hasKey(row: number): boolean {
    return this.keys.keyAt(row) !== undefined
  }

  isOpened(row: number, turn: number): boolean {
    return this.opened.has(row, turn)
  }

  limitOf(row: number): Limit {
    return this.limits.of(row)
  }

  remaining(row: number, nowUs: number): number {
    return this.algorithm.remaining(this.limits.of(row), this.columns.view(row), nowUs)
  }

  isIdle(row: number, nowUs: number): boolean {
    return this.resetAfterUs(row, nowUs) === 0
  }

  private resetAfterUs(row: number, nowUs: number): number {
    return this.algorithm.resetAfterUs(this.limits.of(row), this.columns.view(row), nowUs)
  }

  /**
   * Charges a row if the cost fits; returns false, with nothing changed, if not or if the clock has stepped back.
   * The row must have no kept denial.
   */
  private take(row: number, limit: Limit, cost: number, nowUs: number, admission: Admission): boolean {
    if (limit !== this.limits.only) this.noteLimit(row, limit)
    return this.algorithm.take(limit, this.columns.at(row), cost, nowUs, admission)
  }

  /** Denies a row one unit and keeps the denial. False if the clock has stepped back and it may be admitted. */
  private denyOne(row: number, limit: Limit, nowUs: number): KeptDenial | false {
    const { algorithm } = this
    if (algorithm.waitUs(limit, this.columns.at(row), 1, nowUs) === 0) return false
    const answer = decideAlone(algorithm, limit, this.columns.at(row), 1, nowUs)
    const denial = new KeptDenial(answer, limit, nowUs)
    this.denials.keep(row, denial)
    return denial
  }

  private use(row: number, limit: Limit, turn: number): State {
    this.denials.forget(row)
    this.noteLimit(row, limit)
    const known = this.opened.find(row, turn)
    if (known !== undefined) return known
    const state = this.columns.view(row)
    this.opened.add(row, state)
    return state
  }

  /** Under other numbers the key may have been denied, and for longer than these numbers say. */
  private noteLimit(row: number, limit: Limit): void {
    if (limit === this.limits.of(row)) return
    this.limits.set(row, limit)
    this.denials.forget(row)
  }

  private deleteRow(row: number): true {
    this.keys.delete(row)
    this.columns.clear(row)
    this.denials.forget(row)
    this.noteLimit(row, this.limits.usual)
    return true
  }
}
