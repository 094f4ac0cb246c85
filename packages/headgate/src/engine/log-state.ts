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
