/** Finds who was denied most in the last minutes, summed over seconds that each know only their own worst. */
import { handleOf, type Violation } from 'headgate/statistics'
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

interface Sum {
  denied: number
  error: number
  policy: string
  tier: string | null
}

const KEPT_MS = 300_000
const MAX_SHOWN = 20

export class RecentViolators {
  private seconds: Pick<Second, 'atMs' | 'violators'>[] = []

  add({ atMs, violators }: Second): void {
    this.seconds = this.seconds.filter(second => second.atMs > atMs - KEPT_MS)
    if (violators.length > 0) this.seconds.push({ atMs, violators })
  }

  /** Takes denials recorded before anybody looked, the newest first: each was denied at least that often. */
  remember(violations: readonly Violation[]): void {
    const before = violations.toReversed().map(({ atMs, subject, policy, tier }) => ({
      atMs,
      violators: [{ subject, denied: 1, error: 0, policy, tier }],
    }))
    this.seconds = [...before, ...this.seconds]
  }

  /** Those of the last minutes by full name, the worst first. */
  private sums(): [string, Sum][] {
    const sums = new Map<string, Sum>()
    for (const { violators } of this.seconds) {
      for (const { subject, denied, error, policy, tier } of violators) {
        const sum = sums.get(subject)
        if (sum === undefined) sums.set(subject, { denied, error, policy, tier })
        else {
          sum.denied += denied
          sum.error += error
          sum.policy = policy
          sum.tier = tier
        }
      }
    }
    return [...sums].toSorted(([, one], [, other]) => other.denied - one.denied)
  }

  subjectOf(handle: string): string | null {
    return this.sums().find(([subject]) => handleOf(subject) === handle)?.[0] ?? null
  }

  top(options: {
    readonly nowMs: number
    readonly show: (subject: string) => string
    readonly isOverridden: (subject: string) => boolean
  }): { readonly violators: ShownViolator[]; readonly errorAtMost: number } {
    const { nowMs, show, isOverridden } = options
    const during = Math.max(1, (nowMs - (this.seconds[0]?.atMs ?? nowMs)) / 1000 + 1)
    const worst = this.sums().slice(0, MAX_SHOWN)
    const violators = worst.map(([subject, { denied, policy, tier }]) => ({
      subject: show(subject),
      handle: handleOf(subject),
      denied,
      deniedPerSecond: denied / during,
      policy: policy === '' ? null : policy,
      tier,
      overridden: isOverridden(subject),
    }))
    return { violators, errorAtMost: Math.max(0, ...worst.map(([, { error }]) => error)) }
  }
}
