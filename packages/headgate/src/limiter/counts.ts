import type { PendingCheck } from '../check/pending-check.js'
import { policyOf } from '../decision/decision.js'

/** Counts of limits that do not bind, by policy. */
export interface ShadowCounts {
  readonly wouldAllow: number
  readonly wouldDeny: number
}

/** Counts since the limiter was made. Labels are names of policies, never subjects. */
export interface LimiterCounts {
  /** Requests about which nothing could be asked: see `fallback`. */
  readonly faults: number
  /** `rate_limit_shadow_divergence_total`: decisions of mode `compare` in which process and store differed. */
  readonly shadowDivergence: number
  /** Requests that the shadow limits would, or would not, have admitted, by policy. */
  readonly shadow: Readonly<Record<string, ShadowCounts>>
  /** The same for candidates. */
  readonly candidates: Readonly<Record<string, ShadowCounts>>
  /** Bans that this process saw begin, by policy. */
  readonly bans: Readonly<Record<string, number>>
  readonly reloads: number
}

const CANDIDATE = '+candidate'

/** Counts what a limiter reports of itself. */
export class Counter {
  faults = 0
  shadowDivergence = 0
  reloads = 0
  private readonly shadow = new Map<string, ShadowCounts>()
  private readonly candidates = new Map<string, ShadowCounts>()
  private readonly bans = new Map<string, number>()

  read(): LimiterCounts {
    const { faults, shadowDivergence, reloads } = this
    return {
      faults,
      shadowDivergence,
      shadow: Object.fromEntries(this.shadow),
      candidates: Object.fromEntries(this.candidates),
      bans: Object.fromEntries(this.bans),
      reloads,
    }
  }

  countBan(policy: string): void {
    this.bans.set(policy, (this.bans.get(policy) ?? 0) + 1)
  }

  /** Counts a decision with shadow limits: a policy would admit if all its limits do. */
  countShadow(check: PendingCheck): void {
    const { plan } = check
    if (check.isUnlooked) return
    const byPolicy = new Map<string, boolean>()
    for (let index = plan.shadowFrom; index < plan.limits.length; index++) {
      const policy = policyOf(plan.limits[index]?.name ?? '')
      byPolicy.set(policy, (byPolicy.get(policy) ?? true) && check.wait(index) === 0)
    }
    for (const [name, allowed] of byPolicy) {
      const isCandidate = name.endsWith(CANDIDATE)
      const tally = isCandidate ? this.candidates : this.shadow
      const policy = isCandidate ? name.slice(0, -CANDIDATE.length) : name
      const { wouldAllow, wouldDeny } = tally.get(policy) ?? { wouldAllow: 0, wouldDeny: 0 }
      tally.set(policy, {
        wouldAllow: wouldAllow + (allowed ? 1 : 0),
        wouldDeny: wouldDeny + (allowed ? 0 : 1),
      })
    }
  }
}
