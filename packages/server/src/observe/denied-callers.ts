/** Finds who was denied most in the last minutes, summed over seconds that each know only their own worst. */
import { type Denial, type DeniedCallers, referenceOf } from 'headgate/internal'
import { errorOf, mergeDeniedCallers } from './merge-denied-callers.js'

export interface ShownDeniedCaller {
  readonly subject: string
  readonly reference: string
  readonly denied: number
  readonly deniedPerSecond: number
  readonly policy: string | null
  readonly tier: string | null
  readonly overridden: boolean
}

const KEPT_MS = 300_000
const MAX_SHOWN = 20

export class RecentDeniedCallers {
  private seconds: (DeniedCallers & { readonly atMs: number })[] = []

  add(atMs: number, { deniedCallers, unlistedAtMost, sampledOneIn }: DeniedCallers): void {
    this.seconds = this.seconds.filter(second => second.atMs > atMs - KEPT_MS)
    if (deniedCallers.length > 0 || unlistedAtMost > 0) {
      this.seconds.push({ atMs, deniedCallers, unlistedAtMost, sampledOneIn })
    }
  }

  /** Takes denials kept before anybody looked, the oldest first: each was denied at least that often. */
  remember(denials: readonly Denial[]): void {
    const before = denials.map(({ atMs, subject, policy, tier, count }) => ({
      atMs,
      deniedCallers: [{ subject, denied: count, error: 0, policy, tier }],
      unlistedAtMost: 0,
      sampledOneIn: 1,
    }))
    this.seconds = [...before, ...this.seconds].toSorted((one, other) => one.atMs - other.atMs)
  }

  /** Those of the last minutes by full name, the worst first. */
  private sums(): DeniedCallers {
    const merged = mergeDeniedCallers(this.seconds)
    return {
      ...merged,
      deniedCallers: merged.deniedCallers.toSorted((one, other) => other.denied - one.denied),
    }
  }

  subjectOf(reference: string): string | null {
    return (
      this.sums().deniedCallers.find(({ subject }) => referenceOf(subject) === reference)?.subject ?? null
    )
  }

  /** How often it was denied in the last minutes, as far as it was among those denied most. */
  deniedOf(reference: string): number {
    return this.sums().deniedCallers.find(({ subject }) => referenceOf(subject) === reference)?.denied ?? 0
  }

  /** The worst, and by how much each of their counts may be too high or too low. */
  top(options: {
    readonly nowMs: number
    readonly show: (subject: string) => string
    readonly isOverridden: (subject: string) => boolean
  }): { readonly deniedCallers: ShownDeniedCaller[]; readonly errorAtMost: number } {
    const { nowMs, show, isOverridden } = options
    const during = Math.max(1, (nowMs - (this.seconds[0]?.atMs ?? nowMs)) / 1000 + 1)
    const { deniedCallers, sampledOneIn } = this.sums()
    const worst = deniedCallers.slice(0, MAX_SHOWN)
    return {
      deniedCallers: worst.map(({ subject, denied, policy, tier }) => ({
        subject: show(subject),
        reference: referenceOf(subject),
        denied,
        deniedPerSecond: denied / during,
        policy: policy === '' ? null : policy,
        tier,
        overridden: isOverridden(subject),
      })),
      errorAtMost: Math.max(0, ...worst.map(deniedCaller => errorOf(deniedCaller, sampledOneIn))),
    }
  }
}
