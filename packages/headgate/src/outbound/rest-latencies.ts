/** The latency without queueing of each kind of request, in microseconds: the least mean of a batch of answers. */
interface Rest {
  us: number
  /** Answers since the last mean. */
  count: number
  sumUs: number
}

/** How many kinds are told apart; further ones are one kind. */
const MOST_KINDS = 64
const OTHER = '\0other'
/** Few answers are fast by chance. */
const BATCH = 10

export class RestLatencies {
  readonly #byKind = new Map<string, Rest>()

  /** Returns the name under which a kind is known. */
  nameOf(kind: string): string {
    return this.#byKind.has(kind) || this.#byKind.size < MOST_KINDS ? kind : OTHER
  }

  /** Infinite before the first answer. */
  of(kind: string): number {
    return Math.max(1, this.#byKind.get(kind)?.us ?? Number.POSITIVE_INFINITY)
  }

  /** Adds answers. Until there is a batch of them, the first mean holds. */
  add(kind: string, count: number, sumUs: number): void {
    const known = this.#byKind.get(kind)
    if (known === undefined) {
      this.#byKind.set(kind, { us: sumUs / count, count: 0, sumUs: 0 })
      return
    }
    known.count += count
    known.sumUs += sumUs
    if (known.count < BATCH) return
    known.us = Math.min(known.us, known.sumUs / known.count)
    known.count = 0
    known.sumUs = 0
  }

  raise(kind: string, us: number): void {
    this.#byKind.set(kind, { us, count: 0, sumUs: 0 })
  }
}
