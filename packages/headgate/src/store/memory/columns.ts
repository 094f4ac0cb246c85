/**
 * States side by side in typed arrays instead of one object each: a third of the memory, and nothing for the garbage
 * collector to walk. They grow by pages, so that growing never copies and never stalls.
 * A view looks like the engine's state and reads and writes its row in place.
 */
import type { State } from '../../engine/algorithms.js'
import { algorithmOf } from '../../engine/algorithms.js'
import type { Limit } from '../../engine/limit.js'
import type { CounterState } from '../../engine/sliding-window-counter.js'
import type { BucketState } from '../../engine/token-bucket.js'

const PAGE_BITS = 12
const PAGE_ROWS = 1 << PAGE_BITS
const ROW_MASK = PAGE_ROWS - 1

/** Rows of states by number. `view` of a row stays valid until the row is cleared. */
export interface Columns {
  view(row: number): State
  /** Makes the row the state of a key nobody has asked for. */
  clear(row: number): void
}

/** Columns that suit the algorithm of `limit`. */
export function createColumns(limit: Limit): Columns {
  if (limit.algorithm === 'sliding-window-counter') return new CounterColumns()
  if (limit.algorithm === 'token-bucket') return new BucketColumns()
  return new ObjectColumns(limit)
}

interface CounterPage {
  readonly startUs: Float64Array
  readonly current: Uint32Array
  readonly previous: Uint32Array
}

class CounterView implements CounterState {
  constructor(
    readonly page: CounterPage,
    readonly index: number,
  ) {}
  get startUs(): number {
    return this.page.startUs[this.index] as number
  }
  set startUs(value: number) {
    this.page.startUs[this.index] = value
  }
  get current(): number {
    return this.page.current[this.index] as number
  }
  set current(value: number) {
    this.page.current[this.index] = value
  }
  get previous(): number {
    return this.page.previous[this.index] as number
  }
  set previous(value: number) {
    this.page.previous[this.index] = value
  }
}

class CounterColumns implements Columns {
  readonly #pages: CounterPage[] = []

  view(row: number): CounterState {
    return new CounterView(this.#page(row), row & ROW_MASK)
  }

  clear(row: number): void {
    const page = this.#page(row)
    page.startUs[row & ROW_MASK] = 0
    page.current[row & ROW_MASK] = 0
    page.previous[row & ROW_MASK] = 0
  }

  #page(row: number): CounterPage {
    const number = row >>> PAGE_BITS
    let page = this.#pages[number]
    if (page === undefined) {
      page = {
        startUs: new Float64Array(PAGE_ROWS),
        current: new Uint32Array(PAGE_ROWS),
        previous: new Uint32Array(PAGE_ROWS),
      }
      this.#pages[number] = page
    }
    return page
  }
}

interface BucketPage {
  readonly missing: Float64Array
  readonly lastRefillUs: Float64Array
}

class BucketView implements BucketState {
  constructor(
    readonly page: BucketPage,
    readonly index: number,
  ) {}
  get missing(): number {
    return this.page.missing[this.index] as number
  }
  set missing(value: number) {
    this.page.missing[this.index] = value
  }
  get lastRefillUs(): number {
    return this.page.lastRefillUs[this.index] as number
  }
  set lastRefillUs(value: number) {
    this.page.lastRefillUs[this.index] = value
  }
}

class BucketColumns implements Columns {
  readonly #pages: BucketPage[] = []

  view(row: number): BucketState {
    return new BucketView(this.#page(row), row & ROW_MASK)
  }

  clear(row: number): void {
    const page = this.#page(row)
    page.missing[row & ROW_MASK] = 0
    page.lastRefillUs[row & ROW_MASK] = 0
  }

  #page(row: number): BucketPage {
    const number = row >>> PAGE_BITS
    let page = this.#pages[number]
    if (page === undefined) {
      page = { missing: new Float64Array(PAGE_ROWS), lastRefillUs: new Float64Array(PAGE_ROWS) }
      this.#pages[number] = page
    }
    return page
  }
}

/** For states of changing size: the objects themselves. */
class ObjectColumns implements Columns {
  readonly #states: (State | undefined)[] = []
  readonly #limit: Limit

  constructor(limit: Limit) {
    this.#limit = limit
  }

  view(row: number): State {
    const state = this.#states[row]
    if (state !== undefined) return state
    const fresh = algorithmOf(this.#limit).empty()
    this.#states[row] = fresh
    return fresh
  }

  clear(row: number): void {
    this.#states[row] = undefined
  }
}
