import type { State } from '../../engine/legacy-algorithm.js'

/**
 * The rows of a table that the question being decided has opened. They are about to be written to and are not forgotten
 * before it is answered.
 */
export class OpenedRows {
  private readonly rows: number[] = []
  /** One for each of them: two checks of a question that meet in a row see what the other has written. */
  private readonly states: State[] = []
  private count = 0
  private turn = 0

  has(row: number, turn: number): boolean {
    return turn === this.turn && this.indexOf(row) >= 0
  }

  /** Returns the state of a row opened before in this turn. */
  find(row: number, turn: number): State | undefined {
    if (turn !== this.turn) {
      this.turn = turn
      this.count = 0
    }
    const index = this.indexOf(row)
    return index < 0 ? undefined : this.states[index]
  }

  add(row: number, state: State): void {
    this.rows[this.count] = row
    this.states[this.count++] = state
  }

  private indexOf(row: number): number {
    for (let index = 0; index < this.count; index++) if (this.rows[index] === row) return index
    return -1
  }
}
