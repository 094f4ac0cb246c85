/** The denials of the last day, for those who ask why somebody was denied. */
import { type Denial, referenceOf } from 'headgate/internal'

/** A denial as shown to operators. */
export interface ShownDenial extends Denial {
  /** The reference in the rejection, so that caller and operator can talk about the same one. */
  readonly reference: string
}

export interface DenialQuery {
  readonly limit: number
  /** Each null for any. */
  readonly policy?: string | null
  readonly tier?: string | null
  readonly rule?: string | null
  readonly reference?: string | null
  readonly requestId?: string | null
}

const KEPT = 10_000
/** Cut off at once: shifting the list for every denial would take longer than keeping it. */
const SLACK = 1_000
const HOURS = 24
const HOUR_MS = 3_600_000
const KEPT_MS = HOURS * HOUR_MS

export class DenialLog {
  /** The oldest first. */
  private entries: ShownDenial[] = []
  /** Those that this process has recorded itself while the fleet could not be read. */
  private readonly own = new Set<string>()

  constructor(private readonly unixMs: () => number) {}

  /** Adds denials of this process alone, the oldest first. */
  addOwn(denials: readonly Denial[]): void {
    for (const denial of denials) this.own.add(idOf(denial))
    if (this.own.size > KEPT) this.own.clear()
    this.keep(denials)
  }

  /** Adds denials of a whole fleet, the oldest first. */
  add(denials: readonly Denial[]): void {
    this.keep(denials.filter(denial => !this.own.delete(idOf(denial))))
  }

  subjectOf(reference: string): string | null {
    return this.entries.findLast(entry => entry.reference === reference)?.subject ?? null
  }

  /** How often a caller was denied in each of the last 24 hours, the oldest first, as far as denials were kept. */
  deniedByHour(reference: string): readonly number[] {
    const hours = new Array<number>(HOURS).fill(0)
    const nowMs = this.unixMs()
    for (const { atMs, reference: whose, count } of this.entries) {
      const hour = HOURS - 1 - Math.floor((nowMs - atMs) / HOUR_MS)
      if (whose === reference && hour >= 0 && hour < HOURS) hours[hour] = (hours[hour] as number) + count
    }
    return hours
  }

  /** The newest first. */
  find(query: DenialQuery, show: (subject: string) => string): ShownDenial[] {
    const sinceMs = this.unixMs() - KEPT_MS
    const found: ShownDenial[] = []
    for (let index = this.entries.length - 1; index >= 0 && found.length < query.limit; index--) {
      const entry = this.entries[index] as ShownDenial
      if (entry.atMs > sinceMs && isWanted(entry, query)) {
        found.push({ ...entry, subject: show(entry.subject) })
      }
    }
    return found
  }

  private keep(denials: readonly Denial[]): void {
    for (const denial of denials) this.entries.push({ ...denial, reference: referenceOf(denial.subject) })
    if (this.entries.length > KEPT + SLACK) this.entries = this.entries.slice(-KEPT)
  }
}

function isWanted(entry: ShownDenial, { policy, tier, rule, reference, requestId }: DenialQuery): boolean {
  return (
    (policy ?? entry.policy) === entry.policy &&
    (tier ?? entry.tier) === entry.tier &&
    (rule ?? entry.rule) === entry.rule &&
    (reference ?? entry.reference) === entry.reference &&
    (requestId ?? entry.requestId) === entry.requestId
  )
}

function idOf({ atMs, subject, rule, requestId }: Denial): string {
  return `${atMs} ${subject} ${rule} ${requestId}`
}
