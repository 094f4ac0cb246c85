/**
 * Room for the entries of many logs: blocks whose sizes are powers of two, cut from pages of one size each. A log that
 * outgrows its block moves to one of twice the size. A page without a block in use is let go, so that logs which grow
 * do not leave behind all the sizes they have had.
 */

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
export class EntryPage {
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

  constructor(
    readonly number: number,
    /** Entries of a block. */
    readonly blockSize: number,
    /** Entries of all blocks together. */
    readonly size: number,
  ) {
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

/** Blocks by address: the number of a page and where in it the block lies. */
export class EntryBlocks {
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
export function offsetOf(address: number): number {
  return address & OFFSET_MASK
}

function classOf(size: number): number {
  return 31 - Math.clz32(size)
}
