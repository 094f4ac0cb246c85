/** The entries of logs: as lists, and for many keys in rows and blocks of typed arrays. */
import { type Page, RowView, TypedRows } from './rows.js'

/** Numbers that can be read and written by index. */
export interface Numbers {
  [index: number]: number
}

/** The entries of a log, oldest first: those from `first` up to, and without, `end`. */
export interface LogState {
  /** When an entry was written. */
  readonly times: Numbers
  /** The running total of units up to and with an entry, modulo 2^32: what counts at once is less than that. */
  readonly totals: Numbers
  readonly first: number
  readonly end: number
  /** The running total just before the first entry. */
  readonly baseTotal: number
  /** Adds an entry. Those that are there may be elsewhere afterwards, in the same order. */
  append(timeUs: number, total: number): void
  /** Drops the entries before `index`. */
  dropBefore(index: number): void
  /** Drops the entries from `index` on. */
  dropFrom(index: number): void
}

/** A log as two lists. */
export class ListedLog implements LogState {
  readonly times: number[] = []
  readonly totals: number[] = []
  readonly first = 0
  baseTotal = 0

  get end(): number {
    return this.times.length
  }

  append(timeUs: number, total: number): void {
    this.times.push(timeUs)
    this.totals.push(total)
  }

  dropBefore(index: number): void {
    if (index > 0) this.baseTotal = this.totals[index - 1] as number
    this.times.splice(0, index)
    this.totals.splice(0, index)
  }

  dropFrom(index: number): void {
    this.times.length = index
    this.totals.length = index
  }
}

const PAGE_BITS = 14
/** Entries of a page: a block larger than that has a page to itself. */
const PAGE_ENTRIES = 1 << PAGE_BITS
/** Entries of the first page of a size: most stores hold few logs that are long. */
const FIRST_PAGE_ENTRIES = 1 << 10
const OFFSET_MASK = PAGE_ENTRIES - 1
const NONE = 0xffff_ffff

/** The address of no block, whose size is 0. */
const NO_BLOCK = 0

/** Blocks of one size, whose entries are times and running totals. */
class EntryPage {
  readonly times: Float64Array
  readonly totals: Uint32Array
  /** Blocks in use. */
  used = 0
  /** Neighbours among the pages that have room. */
  next: EntryPage | null = null
  previous: EntryPage | null = null
  /** Where the first block lies that was given back; each of those holds where the next one does. */
  private firstFree = NONE
  /** Where the blocks begin that were never used. */
  private fresh = 0

  readonly number: number
  /** Entries of a block. */
  readonly blockSize: number
  /** Entries of all blocks together. */
  readonly size: number

  constructor(number: number, blockSize: number, size: number) {
    this.number = number
    this.blockSize = blockSize
    this.size = size
    this.times = new Float64Array(size)
    this.totals = new Uint32Array(size)
  }

  get isFull(): boolean {
    return this.firstFree === NONE && this.fresh === this.size
  }

  /** Takes a block of a page that is not full. Returns where it lies. */
  take(): number {
    this.used++
    const offset = this.firstFree
    if (offset === NONE) {
      this.fresh += this.blockSize
      return this.fresh - this.blockSize
    }
    this.firstFree = this.totals[offset] as number
    return offset
  }

  give(offset: number): void {
    this.used--
    this.totals[offset] = this.firstFree
    this.firstFree = offset
  }
}

/**
 * Room for the entries of many logs: blocks whose sizes are powers of two, cut from pages of one size each. A log that
 * outgrows its block moves to one of twice the size. A page without a block in use is let go, so that logs which grow
 * do not leave behind all the sizes they have had. A block has an address: the number of a page and where in it it lies.
 * Instead of two arrays for each log: a key with five entries takes 163 bytes, not 481, and a decision half the time.
 */
class EntryBlocks {
  private readonly pages: (EntryPage | undefined)[] = [new EntryPage(0, 0, 0)]
  private readonly freeNumbers: number[] = []
  /** The first page that has room, by the binary logarithm of its blocks' size. */
  private readonly withRoom: (EntryPage | null)[] = []

  pageOf(address: number): EntryPage {
    return this.pages[address >>> PAGE_BITS] as EntryPage
  }

  /** Returns the address of a block for `size` entries, a power of two. */
  take(size: number): number {
    const page = this.withRoom[classOf(size)] ?? this.addPage(size)
    const address = page.number * PAGE_ENTRIES + page.take()
    if (page.isFull) this.unlink(page)
    return address
  }

  give(address: number): void {
    if (address === NO_BLOCK) return
    const page = this.pageOf(address)
    if (page.isFull) this.link(page)
    page.give(offsetOf(address))
    if (page.used === 0) this.letGo(page)
  }

  /** One small page without a block stays, so that a block which comes and goes does not make a page each time. */
  private letGo(page: EntryPage): void {
    const isLast = page.next === null && page.previous === null
    if (isLast && page.blockSize < PAGE_ENTRIES) return
    this.unlink(page)
    this.pages[page.number] = undefined
    this.freeNumbers.push(page.number)
  }

  private addPage(size: number): EntryPage {
    const isFirst = this.withRoom[classOf(size)] === undefined
    const entries = Math.max(size, isFirst ? FIRST_PAGE_ENTRIES : PAGE_ENTRIES)
    const page = new EntryPage(this.freeNumbers.pop() ?? this.pages.length, size, entries)
    this.pages[page.number] = page
    this.link(page)
    return page
  }

  private link(page: EntryPage): void {
    const first = this.withRoom[classOf(page.blockSize)] ?? null
    page.next = first
    if (first !== null) first.previous = page
    this.withRoom[classOf(page.blockSize)] = page
  }

  private unlink(page: EntryPage): void {
    const { next, previous } = page
    if (previous === null) this.withRoom[classOf(page.blockSize)] = next
    else previous.next = next
    if (next !== null) next.previous = previous
    page.next = null
    page.previous = null
  }
}

/** Where in its page the block at an address lies. */
function offsetOf(address: number): number {
  return address & OFFSET_MASK
}

function classOf(size: number): number {
  return 31 - Math.clz32(size)
}

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
 * oldest entry is, how many there are, and the running total before them. Of that the view keeps what the algorithm reads.
 */
class LogView extends RowView implements LogState {
  declare times: Float64Array
  declare totals: Uint32Array
  declare first: number
  declare end: number
  declare baseTotal: number

  private readonly blocks: EntryBlocks

  constructor(page: Page, index: number, blocks: EntryBlocks) {
    super(page, index)
    this.blocks = blocks
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

/** Rows of logs, whose entries share blocks. */
export function logRows(): TypedRows<LogState, LogView> {
  const blocks = new EntryBlocks()
  return new TypedRows((page, index) => new LogView(page, index, blocks))
}
