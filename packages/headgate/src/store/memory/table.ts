import { algorithmOf, type State } from '../../engine/algorithms.js'
import type { Limit } from '../../engine/limit.js'
import { type Columns, createColumns } from './columns.js'

/** How many rows are looked at to find one to forget: enough for a good one, few enough to cost nothing. */
const SAMPLE = 16

/** The states of one limit, by the key of who they belong to. */
export class Table {
  readonly #columns: Columns
  readonly #rows = new Map<string, number>()
  readonly #keys: (string | undefined)[] = []
  readonly #free: number[] = []
  #limit: Limit
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

  /** Adds a key that is not there, with nothing used. */
  add(key: string, limit: Limit): State {
    this.#limit = limit
    const row = this.#free.pop() ?? this.#keys.length
    this.#keys[row] = key
    this.#rows.set(key, row)
    return this.#columns.view(row)
  }

  delete(key: string): boolean {
    const row = this.#rows.get(key)
    if (row === undefined) return false
    this.#rows.delete(key)
    this.#keys[row] = undefined
    this.#columns.clear(row)
    this.#free.push(row)
    return true
  }

  /**
   * Forgets one key: one that has nothing used if the sample holds any, else the one that has used least.
   * Never one that is at its limit: a client must not get free by making others be remembered. Returns whether a key
   * was found. A hand that goes round the rows makes every row come up in turn, without a sweep.
   */
  forgetOne(nowUs: number): boolean {
    const algorithm = algorithmOf(this.#limit)
    let best: string | undefined
    let bestRemaining = 0
    for (let looked = 0; looked < SAMPLE; looked++) {
      this.#hand = this.#hand + 1 < this.#keys.length ? this.#hand + 1 : 0
      const key = this.#keys[this.#hand]
      if (key === undefined) continue
      const left = algorithm.remaining(this.#limit, this.#columns.view(this.#hand), nowUs)
      if (left > bestRemaining) {
        best = key
        bestRemaining = left
      }
      if (left >= this.#limit.limit) break
    }
    return best !== undefined && this.delete(best)
  }
}
