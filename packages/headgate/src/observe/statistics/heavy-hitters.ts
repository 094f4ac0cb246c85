/**
 * Finds the most denied among more subjects than can be tracked (Space-Saving, Metwally et al. 2005).
 *
 * There is a fixed number of counters. A subject without one takes over the smallest, including its count. So a subject
 * that is denied often enough cannot be pushed out, and the error of each count is known.
 *
 * Invariant: count − error ≤ true count ≤ count; every subject denied more than total ÷ room times is among them.
 */

export interface Hitter<Detail> {
  readonly subject: string
  count: number
  /** By how much the count may be too high. */
  error: number
  /** From the latest denial. */
  detail: Detail
}

export class HeavyHitters<Detail> {
  private readonly bySubject = new Map<string, Hitter<Detail>>()

  constructor(private readonly room: number) {}

  add(subject: string, count: number, detail: Detail): void {
    const known = this.bySubject.get(subject)
    if (known !== undefined) {
      known.count += count
      known.detail = detail
      return
    }
    const smallest = this.bySubject.size < this.room ? null : this.smallest()
    if (smallest !== null) this.bySubject.delete(smallest.subject)
    const error = smallest?.count ?? 0
    this.bySubject.set(subject, { subject, count: error + count, error, detail })
  }

  /** Returns the `most` most denied, in descending order. */
  top(most: number): Hitter<Detail>[] {
    return [...this.bySubject.values()].toSorted((one, other) => other.count - one.count).slice(0, most)
  }

  clear(): void {
    this.bySubject.clear()
  }

  private smallest(): Hitter<Detail> {
    let smallest: Hitter<Detail> | null = null
    for (const hitter of this.bySubject.values()) {
      if (smallest === null || hitter.count < smallest.count) smallest = hitter
    }
    return smallest as Hitter<Detail>
  }
}
