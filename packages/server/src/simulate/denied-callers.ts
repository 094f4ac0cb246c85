/** Keeps the callers that were denied most. When there are too many, the half that was denied least is dropped. */

/** A caller that was denied. */
export interface DeniedCaller {
  readonly subject: string
  readonly denied: number
  /** The Unix time in milliseconds of the first denial. */
  readonly firstAtMs: number
}

const MAX_KEPT = 100_000

export class DeniedCallers {
  private kept = new Map<string, { denied: number; firstAtMs: number }>()
  /** Whether callers were dropped, so that the counts of rare ones may be too low. */
  isPartial = false

  add(subject: string, atMs: number): void {
    const known = this.kept.get(subject)
    if (known !== undefined) known.denied++
    else this.keep(subject, atMs)
  }

  get size(): number {
    return this.kept.size
  }

  /** Returns the callers denied most, the worst first. */
  top(count: number): readonly DeniedCaller[] {
    return [...this.kept]
      .map(([subject, counts]) => ({ subject, ...counts }))
      .sort((a, b) => b.denied - a.denied || (a.subject < b.subject ? -1 : 1))
      .slice(0, count)
  }

  private keep(subject: string, atMs: number): void {
    if (this.kept.size >= MAX_KEPT) this.dropHalf()
    this.kept.set(subject, { denied: 1, firstAtMs: atMs })
  }

  private dropHalf(): void {
    this.isPartial = true
    const byDenied = [...this.kept].sort(([, a], [, b]) => b.denied - a.denied)
    this.kept = new Map(byDenied.slice(0, MAX_KEPT / 2))
  }
}
