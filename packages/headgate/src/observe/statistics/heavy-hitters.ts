/**
 * Finds the most denied among more subjects than can be tracked (Space-Saving, Metwally et al. 2005).
 *
 * There is a fixed number of counters. A subject without one takes over the smallest, including its count. So a subject
 * that is denied often enough cannot be pushed out, and the error of each count is known.
 *
 * Invariant: count − error ≤ true count ≤ count; every subject denied more than total ÷ room times is among them.
 * If a count stands for as many denials of which one was looked at, the true count is that of the sample.
 */

export interface Hitter<Detail> {
  readonly subject: string
  count: number
  /** By how much the count may be too high. */
  error: number
  /** At least the variance of the count of its sample; 0 if every denial was looked at. */
  variance: number
  /** From the latest denial. */
  detail: Detail
}

/** Returns the most by which denials vary that were looked at with a chance of one in `gap`. */
function varianceOf(count: number, gap: number): number {
  return gap === 1 ? 0 : count * gap
}

export class HeavyHitters<Detail> {
  private readonly bySubject = new Map<string, Hitter<Detail>>()

  constructor(private readonly room: number) {}

  add(subject: string, count: number, detail: Detail): void {
    const known = this.bySubject.get(subject)
    if (known !== undefined) {
      known.count += count
      known.variance += varianceOf(count, count)
      known.detail = detail
      return
    }
    const smallest = this.bySubject.size < this.room ? null : this.smallest()
    if (smallest !== null) this.bySubject.delete(smallest.subject)
    const error = smallest?.count ?? 0
    // Counts never decrease, so that what it may have had before varies by no more than this one does.
    const variance = varianceOf(error + count, count)
    this.bySubject.set(subject, { subject, count: error + count, error, variance, detail })
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
