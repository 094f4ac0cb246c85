import type { LogState } from '../../engine/log-state.js'
import { keepV8Shape } from '../../fast-path/keep-v8-shape.js'
import { EntryBlocks, offsetOf } from './entry-blocks.js'
import { NO_PAGE, type Page, RowView } from './row-columns.js'

/** Entries that the smallest block has room for: most keys hold one or two. */
const LEAST_ENTRIES = 2
/** Entries stay in a block if this part of it is free, so that they are moved at most three times each. */
const ROOM = 1 / 4
/** A block of which less than this part is in use is given up for a smaller one, unless it is small itself. */
const SPARSE = 1 / 4
const SMALL_BLOCK = 16

/** The quarters of a row. */
const BLOCK = 0
const HEAD = 1
const LENGTH = 2
const BASE_TOTAL = 3

/**
 * A log, whose entries lie one behind the other in a block. The row holds the address of the block, where in it the
 * oldest entry is, how many there are, and the running total before them. Of that the view keeps what the engine reads.
 */
export class LogView extends RowView implements LogState {
  declare times: Float64Array
  declare totals: Uint32Array
  declare first: number
  declare end: number
  declare baseTotal: number

  constructor(
    page: Page,
    index: number,
    private readonly blocks: EntryBlocks,
  ) {
    super(page, index)
    this.read()
  }

  override moveTo(page: Page, index: number): void {
    this.page = page
    this.index = index
    this.read()
  }

  append(timeUs: number, total: number): void {
    if (this.end === this.blockEnd) this.makeRoom()
    this.times[this.end] = timeUs
    this.totals[this.end] = total
    this.end++
    this.setField(LENGTH, this.length)
  }

  dropBefore(index: number): void {
    if (index > this.first) this.baseTotal = this.totals[index - 1] as number
    this.first = index
    this.write()
    const { length, blockSize } = this
    if (length < blockSize * SPARSE && blockSize > SMALL_BLOCK) this.moveEntries(sizeFor(length))
  }

  dropFrom(index: number): void {
    this.end = index
    this.write()
  }

  override copy(state: LogState): void {
    this.baseTotal = state.baseTotal
    this.write()
    for (let index = state.first; index < state.end; index++) {
      this.append(state.times[index] as number, state.totals[index] as number)
    }
  }

  override clear(): void {
    this.blocks.give(this.field(BLOCK))
    super.clear()
  }

  private read(): void {
    const address = this.field(BLOCK)
    const { times, totals } = this.blocks.pageOf(address)
    this.times = times
    this.totals = totals
    this.first = offsetOf(address) + this.field(HEAD)
    this.end = this.first + this.field(LENGTH)
    this.baseTotal = this.field(BASE_TOTAL)
  }

  private write(): void {
    this.setField(HEAD, this.first - offsetOf(this.field(BLOCK)))
    this.setField(LENGTH, this.length)
    this.setField(BASE_TOTAL, this.baseTotal)
  }

  private get length(): number {
    return this.end - this.first
  }

  private get blockSize(): number {
    return this.blocks.pageOf(this.field(BLOCK)).blockSize
  }

  private get blockEnd(): number {
    return offsetOf(this.field(BLOCK)) + this.blockSize
  }

  /** Moves the entries to the start of their block, or of one of twice the size, so that one more fits. */
  private makeRoom(): void {
    const { length, blockSize } = this
    const isTight = blockSize - length < Math.max(1, blockSize * ROOM)
    this.moveEntries(isTight ? Math.max(LEAST_ENTRIES, blockSize * 2) : blockSize)
  }

  /** Moves the entries to the start of a block of this size: their own, if it has it. */
  private moveEntries(size: number): void {
    const { times, totals, first, end } = this
    const from = this.field(BLOCK)
    const to = size === this.blockSize ? from : this.blocks.take(size)
    const page = this.blocks.pageOf(to)
    let place = offsetOf(to)
    for (let index = first; index < end; index++, place++) {
      page.times[place] = times[index] as number
      page.totals[place] = totals[index] as number
    }
    if (to !== from) this.blocks.give(from)
    this.setField(BLOCK, to)
    this.setField(HEAD, 0)
    this.read()
  }

  private field(quarter: number): number {
    return this.page.integers[this.index * 4 + quarter] as number
  }

  private setField(quarter: number, value: number): void {
    this.page.integers[this.index * 4 + quarter] = value
  }
}

/** The size of block that `length` entries fill by half at most. */
function sizeFor(length: number): number {
  let size = LEAST_ENTRIES
  while (size < 2 * length) size *= 2
  return size
}

keepV8Shape(new LogView(NO_PAGE, 0, new EntryBlocks()))
