import type { Limit } from '../../algorithms/algorithm.js'

/** How many rows are sampled to find one to forget: enough for a good one, few enough to cost nothing. */
const SAMPLE = 16

export const NO_ROW = -1

/** Rows as eviction sees them. */
export interface EvictableRows {
  /** All rows, those without a key included. */
  readonly rowCount: number
  hasKey(row: number): boolean
  /** Whether the question being decided has opened the row. */
  isOpened(row: number, turn: number): boolean
  limitOf(row: number): Limit
  remaining(row: number, nowUs: number): number
  /** Whether nothing of the row is used. */
  isIdle(row: number, nowUs: number): boolean
}

/**
 * Chooses which row of a full store has to go. A cursor goes round the rows, so that every row comes up in turn without
 * a sweep.
 */
export class Eviction {
  private hand = 0

  constructor(private readonly rows: EvictableRows) {}

  /**
   * Chooses a row with nothing used if the sample has any, else the one with the most left. Never one at its limit: that
   * is for `chooseNext`, whose caller keeps it from getting free through newcomers.
   */
  choose(nowUs: number, turn: number): number {
    this.passFreeRows()
    const row = this.bestOfSample(nowUs, turn)
    this.hand = row === NO_ROW ? this.rowAfterHand(SAMPLE) : row
    return row
  }

  /** Chooses the next row whatever it has left. */
  chooseNext(turn: number): number {
    for (let look = 1; look <= this.rows.rowCount; look++) {
      const row = this.rowAfterHand(look)
      if (!this.mayGo(row, turn)) continue
      this.hand = row
      return row
    }
    return NO_ROW
  }

  private bestOfSample(nowUs: number, turn: number): number {
    const { rows } = this
    let best = NO_ROW
    let mostLeft = 0
    const looks = Math.min(SAMPLE, rows.rowCount)
    for (let look = 1; look <= looks; look++) {
      const row = this.rowAfterHand(look)
      if (!this.mayGo(row, turn)) continue
      const left = rows.remaining(row, nowUs)
      if (left >= rows.limitOf(row).limit && rows.isIdle(row, nowUs)) return row
      if (left > mostLeft) {
        best = row
        mostLeft = left
      }
    }
    return best
  }

  private mayGo(row: number, turn: number): boolean {
    return this.rows.hasKey(row) && !this.rows.isOpened(row, turn)
  }

  /** Freed rows are adjacent, and a sample of them would find nothing. */
  private passFreeRows(): void {
    for (let look = 0; look < this.rows.rowCount; look++) {
      const next = this.rowAfterHand(1)
      if (this.rows.hasKey(next)) return
      this.hand = next
    }
  }

  private rowAfterHand(steps: number): number {
    return (this.hand + steps) % Math.max(1, this.rows.rowCount)
  }
}
