/** Finds who was denied most in the last minutes, summed over seconds that each know only their own worst. */
import { type Denial, handleOf, type Violators } from 'headgate/statistics'
import { errorOf, mergeViolators } from './merge-violators.js'
import type { Second } from './second.js'

export interface ShownViolator {
  readonly subject: string
  readonly handle: string
  readonly denied: number
  readonly deniedPerSecond: number
  readonly policy: string | null
  readonly tier: string | null
  readonly overridden: boolean
}

const KEPT_MS = 300_000
const MAX_SHOWN = 20

export class RecentViolators {
  private seconds: (Violators & Pick<Second, 'atMs'>)[] = []

  add({ atMs, violators, unlistedAtMost, sampledOneIn }: Second): void {
    this.seconds = this.seconds.filter(second => second.atMs > atMs - KEPT_MS)
    if (violators.length > 0 || unlistedAtMost > 0) {
      this.seconds.push({ atMs, violators, unlistedAtMost, sampledOneIn })
    }
  }

  /** Takes denials kept before anybody looked, the oldest first: each was denied at least that often. */
  remember(denials: readonly Denial[]): void {
    const before = denials.map(({ atMs, subject, policy, tier, count }) => ({
      atMs,
      violators: [{ subject, denied: count, error: 0, policy, tier }],
      unlistedAtMost: 0,
      sampledOneIn: 1,
    }))
    this.seconds = [...before, ...this.seconds].toSorted((one, other) => one.atMs - other.atMs)
  }

  /** Those of the last minutes by full name, the worst first. */
  private sums(): Violators {
    const merged = mergeViolators(this.seconds)
    return { ...merged, violators: merged.violators.toSorted((one, other) => other.denied - one.denied) }
  }

  subjectOf(handle: string): string | null {
    return this.sums().violators.find(({ subject }) => handleOf(subject) === handle)?.subject ?? null
  }

  /** The worst, and by how much each of their counts may be too high or too low. */
  top(options: {
    readonly nowMs: number
    readonly show: (subject: string) => string
    readonly isOverridden: (subject: string) => boolean
  }): { readonly violators: ShownViolator[]; readonly errorAtMost: number } {
    const { nowMs, show, isOverridden } = options
    const during = Math.max(1, (nowMs - (this.seconds[0]?.atMs ?? nowMs)) / 1000 + 1)
    const { violators, sampledOneIn } = this.sums()
    const worst = violators.slice(0, MAX_SHOWN)
    return {
      violators: worst.map(({ subject, denied, policy, tier }) => ({
        subject: show(subject),
        handle: handleOf(subject),
        denied,
        deniedPerSecond: denied / during,
        policy: policy === '' ? null : policy,
        tier,
        overridden: isOverridden(subject),
      })),
      errorAtMost: Math.max(0, ...worst.map(violator => errorOf(violator, sampledOneIn))),
    }
  }
}
