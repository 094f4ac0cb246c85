/**
 * States as rows of typed arrays instead of one object each: a third of the memory, and nothing for the garbage
 * collector to walk. They grow by pages, so that growing never copies and never stalls.
 * A view looks like the engine's state and reads and writes its row in place.
 */
import type { State } from '../../engine/algorithms.js'
import { algorithmOf } from '../../engine/algorithms.js'
import type { Limit } from '../../engine/limit.js'
import type { CounterState } from '../../engine/sliding-window-counter.js'
import type { BucketState } from '../../engine/token-bucket.js'
import { keepV8Shape } from '../../fast-path/keep-v8-shape.js'

const PAGE_BITS = 12
const PAGE_ROWS = 1 << PAGE_BITS
const ROW_MASK = PAGE_ROWS - 1

/** Rows of states by number. `view` of a row stays valid until the row is cleared. */
export interface Columns {
  view(row: number): State
  /** As `view` of a row seen before, valid until the next glance: for one state at a time, without a new object. */
  glance(row: number): State
  /** Makes the row the state of a key nobody has asked for. */
  clear(row: number): void
}

/** Columns that suit the algorithm of `limit`. */
export function createColumns(limit: Limit): Columns {
  if (limit.algorithm === 'sliding-window-counter') return new CounterColumns()
  if (limit.algorithm === 'token-bucket') return new BucketColumns()
  return new ObjectColumns(limit)
}

const ROW_BYTES = 16

/**
 * Rows of 16 bytes, each whole in one line of the processor's cache, as doubles and as 32-bit numbers. When a row was
 * reset stands beside them: few ever are.
 */
interface Page {
  readonly doubles: Float64Array
  readonly integers: Uint32Array
  readonly resets: Map<number, number>
}

const NO_PAGE: Page = { doubles: new Float64Array(), integers: new Uint32Array(), resets: new Map() }

/** The page of a row, made when its first row is asked for. */
function pageOf(pages: Page[], row: number): Page {
  const number = row >>> PAGE_BITS
  let page = pages[number]
  if (page === undefined) {
    const buffer = new ArrayBuffer(PAGE_ROWS * ROW_BYTES)
    page = { doubles: new Float64Array(buffer), integers: new Uint32Array(buffer), resets: new Map() }
    pages[number] = page
  }
  return page
}

function clearRow(pages: Page[], row: number): void {
  const index = row & ROW_MASK
  const page = pageOf(pages, row)
  page.doubles.fill(0, index * 2, index * 2 + 2)
  page.resets.delete(index)
}

/** `startUs` in the first half of the row, `current` and `previous` in the quarters of the second. */
class CounterView implements CounterState {
  constructor(
    public page: Page,
    public index: number,
  ) {}
  get startUs(): number {
    return this.page.doubles[this.index * 2] as number
  }
  set startUs(value: number) {
    this.page.doubles[this.index * 2] = value
  }
  get current(): number {
    return this.page.integers[this.index * 4 + 2] as number
  }
  set current(value: number) {
    this.page.integers[this.index * 4 + 2] = value
  }
  get previous(): number {
    return this.page.integers[this.index * 4 + 3] as number
  }
  set previous(value: number) {
    this.page.integers[this.index * 4 + 3] = value
  }
  get resetUs(): number {
    return this.page.resets.get(this.index) ?? 0
  }
  set resetUs(value: number) {
    if (value === 0) this.page.resets.delete(this.index)
    else this.page.resets.set(this.index, value)
  }
}

class CounterColumns implements Columns {
  private readonly pages: Page[] = []
  private readonly glanced = new CounterView(NO_PAGE, 0)

  view(row: number): CounterState {
    return new CounterView(pageOf(this.pages, row), row & ROW_MASK)
  }

  glance(row: number): CounterState {
    this.glanced.page = this.pages[row >>> PAGE_BITS] as Page
    this.glanced.index = row & ROW_MASK
    return this.glanced
  }

  clear(row: number): void {
    clearRow(this.pages, row)
  }
}

/** `missing` in the first half of the row, `lastRefillUs` in the second. */
class BucketView implements BucketState {
  constructor(
    public page: Page,
    public index: number,
  ) {}
  get missing(): number {
    return this.page.doubles[this.index * 2] as number
  }
  set missing(value: number) {
    this.page.doubles[this.index * 2] = value
  }
  get lastRefillUs(): number {
    return this.page.doubles[this.index * 2 + 1] as number
  }
  set lastRefillUs(value: number) {
    this.page.doubles[this.index * 2 + 1] = value
  }
  get resetUs(): number {
    return this.page.resets.get(this.index) ?? 0
  }
  set resetUs(value: number) {
    if (value === 0) this.page.resets.delete(this.index)
    else this.page.resets.set(this.index, value)
  }
}

class BucketColumns implements Columns {
  private readonly pages: Page[] = []
  private readonly glanced = new BucketView(NO_PAGE, 0)

  view(row: number): BucketState {
    return new BucketView(pageOf(this.pages, row), row & ROW_MASK)
  }

  glance(row: number): BucketState {
    this.glanced.page = this.pages[row >>> PAGE_BITS] as Page
    this.glanced.index = row & ROW_MASK
    return this.glanced
  }

  clear(row: number): void {
    clearRow(this.pages, row)
  }
}

/** For states of changing size: the objects themselves. */
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

  clear(row: number): void {
    this.states[row] = undefined
  }
}

keepV8Shape(new CounterColumns().view(0))
keepV8Shape(new BucketColumns().view(0))
