import type { State } from '../../engine/algorithms.js'
import { algorithmOf } from '../../engine/algorithms.js'
import type { Limit } from '../../engine/limit.js'
import { BucketView } from './bucket-view.js'
import { CounterView } from './counter-view.js'
import { EntryBlocks } from './entry-blocks.js'
import { LogView } from './log-view.js'
import { RowColumns } from './row-columns.js'

/** Rows of states by number. */
export interface Columns {
  /** Shows the state of a row, to be read and written in place as long as nobody else writes to the row. */
  view(row: number): State
  /**
   * Like `view`, for a row seen before, but valid only until the next glance: one state at a time, without a new
   * object.
   */
  glance(row: number): State
  /** Resets the row to the state of a new key. */
  write(row: number, state: State): void
  /** Makes the row the state of a key nobody has asked for. */
  clear(row: number): void
}

/** Makes columns that suit the algorithm of `limit`. */
export function createColumns(limit: Limit): Columns {
  if (limit.algorithm === 'sliding-window-counter')
    return new RowColumns((page, index) => new CounterView(page, index))
  if (limit.algorithm === 'token-bucket') return new RowColumns((page, index) => new BucketView(page, index))
  if (limit.algorithm === 'sliding-window-log') {
    const blocks = new EntryBlocks()
    return new RowColumns((page, index) => new LogView(page, index, blocks))
  }
  return new ObjectColumns(limit)
}

/** For states of changing size that are seldom many: the objects themselves. */
class ObjectColumns implements Columns {
  private readonly states: (State | undefined)[] = []

  constructor(private readonly limit: Limit) {}

  view(row: number): State {
    const state = this.states[row]
    if (state !== undefined) return state
    const fresh = algorithmOf(this.limit).empty()
    this.states[row] = fresh
    return fresh
  }

  glance(row: number): State {
    return this.view(row)
  }

  write(row: number, state: State): void {
    this.states[row] = state
  }

  clear(row: number): void {
    this.states[row] = undefined
  }
}
