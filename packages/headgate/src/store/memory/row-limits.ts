import type { Limit } from '../../algorithms/algorithm.js'

/** The numbers each row was last asked with: tiers and overrides share a table, and each row has its own limit. */
export class RowLimits {
  /** The usual numbers while no row differs. */
  only: Limit | null
  /** The numbers of rows that differ. */
  private readonly others = new Map<number, Limit>()

  constructor(readonly usual: Limit) {
    this.only = usual
  }

  of(row: number): Limit {
    return this.only ?? this.others.get(row) ?? this.usual
  }

  set(row: number, limit: Limit): void {
    if (limit === this.usual) this.others.delete(row)
    else this.others.set(row, limit)
    this.only = this.others.size === 0 ? this.usual : null
  }
}
