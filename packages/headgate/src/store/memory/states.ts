import type { Limit } from '../../algorithms/algorithm.js'
import type { Admission } from '../../engine/legacy-algorithm.js'
import { algorithmOf, type State } from '../../engine/legacy-algorithm.js'
import type { Check } from '../../engine/question.js'
import { Forgotten } from './forgotten.js'
import { keyOf } from './state-key.js'
import { Table } from './table.js'

/**
 * All states of the embedded store: a table for each limit, room for `maxKeys` keys in all of them together, and what is
 * left of keys that had to be forgotten at their limit.
 */
export class States {
  private readonly tables = new Map<string, Table>()
  private forgotten: Forgotten | null = null
  private keyCount = 0
  private lastTurn = 0

  constructor(private readonly maxKeys: number) {}

  get size(): number {
    return this.keyCount
  }

  /** The number of the question being decided. What it has opened is not forgotten. */
  get turn(): number {
    return this.lastTurn
  }

  beginTurn(): void {
    this.lastTurn++
  }

  tableOf(name: string, limit: Limit): Table {
    let table = this.tables.get(name)
    if (table === undefined) {
      table = new Table(name, limit)
      this.tables.set(name, table)
    }
    return table
  }

  find({ subject, scope, name }: Check): State | undefined {
    return this.tables.get(name)?.find(keyOf(subject, scope))
  }

  /** Returns the state a check would be decided on, without making room for it. */
  glance(check: Check, nowUs: number): State {
    return this.find(check) ?? this.stateOfNewcomer(check, keyOf(check.subject, check.scope), nowUs)
  }

  /** Returns the state of a key that has no row. */
  stateOfNewcomer({ name, limit }: Check, key: string, nowUs: number): State {
    return this.stateOfForgotten(name, limit, key, nowUs) ?? algorithmOf(limit).empty()
  }

  /** Returns a state for a key that may have been forgotten at its limit; null for any other. */
  stateOfForgotten(name: string, limit: Limit, key: string, nowUs: number): State | null {
    const untilUs = this.forgotten === null ? 0 : this.forgotten.untilUs(name, key)
    return untilUs > nowUs ? algorithmOf(limit).usedUp(limit, untilUs, nowUs) : null
  }

  /** Adds a new key in this state, to write to in this turn. Returns null if all keys there are have been opened in it. */
  add(table: Table, key: string, limit: Limit, state: State | null, nowUs: number): State | null {
    if (!this.makeRoom(table, nowUs)) return null
    this.keyCount++
    return table.add(key, limit, this.lastTurn, state)
  }

  /** Charges a new key and adds it. Adds nothing if the cost does not fit. */
  takeFirst(table: Table, key: string, limit: Limit, cost: number, nowUs: number, into: Admission): boolean {
    const former = this.stateOfForgotten(table.name, limit, key, nowUs)
    if (former !== null && algorithmOf(limit).waitUs(limit, former, cost, nowUs) > 0) return false
    this.beginTurn()
    // There is always room, because no open state has to be kept.
    this.makeRoom(table, nowUs)
    const isTaken = table.takeFirst({ key, state: former, limit }, cost, nowUs, into)
    if (isTaken) this.keyCount++
    return isTaken
  }

  delete(table: Table, key: string): void {
    if (table.delete(key)) this.keyCount--
  }

  /** A key that was forgotten at its limit is added again, reset. */
  reset({ subject, scope, name, limit }: Check, nowUs: number): void {
    const table = this.tableOf(name, limit)
    const key = keyOf(subject, scope)
    if (table.rowOf(key) === undefined) {
      if (this.stateOfForgotten(name, limit, key, nowUs) === null) return
      this.beginTurn()
      this.add(table, key, limit, null, nowUs)
    }
    table.reset(key, limit, nowUs)
  }

  clear(): void {
    for (const table of this.tables.values()) table.clear()
    this.forgotten = null
    this.keyCount = 0
  }

  private makeRoom(table: Table, nowUs: number): boolean {
    if (this.keyCount < this.maxKeys) return true
    const turn = this.lastTurn
    const crowded = this.largest() ?? table
    const isFound =
      crowded.forgetOne(nowUs, turn) ||
      (crowded !== table && table.forgetOne(nowUs, turn)) ||
      this.forgetAtLimit(crowded, nowUs)
    if (isFound) this.keyCount--
    return isFound
  }

  private largest(): Table | undefined {
    let found: Table | undefined
    for (const table of this.tables.values()) if (table.size > (found?.size ?? 0)) found = table
    return found
  }

  private forgetAtLimit(table: Table, nowUs: number): boolean {
    this.forgotten ??= new Forgotten(this.maxKeys)
    return table.forgetNext(nowUs, this.lastTurn, this.forgotten)
  }
}
