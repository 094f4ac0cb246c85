import { handleOf, type Violation } from 'headgate/statistics'

/** A denial as shown to operators. */
export interface ShownViolation extends Violation {
  /** The reference in the refusal, so that caller and operator can talk about the same one. */
  readonly reference: string
  readonly handle: string
}

export interface ViolationQuery {
  readonly limit: number
  readonly policy: string | null
  readonly tier: string | null
  readonly reference: string | null
}

const KEPT = 1_000

/** The last recorded denials of this process. */
export class ViolationLog {
  private entries: Violation[] = []

  add(violations: readonly Violation[]): void {
    if (violations.length === 0) return
    this.entries = [...violations.toReversed(), ...this.entries].slice(0, KEPT)
  }

  /** Those of a whole fleet, the newest first. */
  replace(violations: readonly Violation[]): void {
    this.entries = violations.slice(0, KEPT)
  }

  subjectOf(handle: string): string | null {
    return this.entries.find(({ subject }) => handleOf(subject) === handle)?.subject ?? null
  }

  /** The newest first. */
  find(
    { limit, policy, tier, reference }: ViolationQuery,
    show: (subject: string) => string,
  ): ShownViolation[] {
    return this.entries
      .filter(
        entry =>
          (policy === null || entry.policy === policy) &&
          (tier === null || entry.tier === tier) &&
          (reference === null || handleOf(entry.subject) === reference),
      )
      .slice(0, limit)
      .map(entry => {
        const handle = handleOf(entry.subject)
        return { ...entry, subject: show(entry.subject), reference: handle, handle }
      })
  }
}
