/**
 * Finds who was denied most, among more subjects than can be kept (Space-Saving, Metwally et al. 2005).
 *
 * As many counters as there is room for. A subject without one takes over the smallest, and its count with it: whoever
 * is denied often enough cannot be pushed out, and what a count may be too high by is known.
 *
 * Invariant: count − error ≤ true count ≤ count; every subject denied more than total ÷ room times is among them.
 */

export interface Hitter<Detail> {
  readonly subject: string
  count: number
  /** By how much the count may be too high. */
  error: number
  /** Of the last time. */
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

  /** The first `most` of them, the most denied first. */
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
