import type { Answer, Question, Verdict } from '../engine/question.js'
import type { LimiterCounts } from '../limiter/limiter.js'

/** Counts of limits that do not bind, by policy. */
export interface ShadowCounts {
  readonly wouldAllow: number
  readonly wouldDeny: number
}

/** Counts since the gate was made. Labels are names of the policy file, never subjects. */
export interface GateCounts extends LimiterCounts {
  /** `rate_limit_shadow_divergence_total`: decisions of mode `compare` in which process and store differed. */
  readonly shadowDivergence: number
  /** Requests that the shadow limits would, or would not, have admitted, by policy. */
  readonly shadow: Readonly<Record<string, ShadowCounts>>
  /** The same for candidates. */
  readonly candidates: Readonly<Record<string, ShadowCounts>>
  readonly reloads: number
}

export interface Counter {
  readonly counts: () => GateCounts
  fault(): void
  divergence(): void
  reload(): void
  shadow(question: Question, answer: Answer): void
}

const CANDIDATE = '+candidate'

export function createCounter(): Counter {
  const shadow = new Map<string, ShadowCounts>()
  const candidates = new Map<string, ShadowCounts>()
  let shadowDivergence = 0
  let reloads = 0
  let faults = 0
  return {
    counts: () => ({
      faults,
      shadowDivergence,
      shadow: Object.fromEntries(shadow),
      candidates: Object.fromEntries(candidates),
      reloads,
    }),
    fault: () => void faults++,
    divergence: () => void shadowDivergence++,
    reload: () => void reloads++,
    shadow(question, answer) {
      for (const [name, allowed] of verdictsByPolicy(question, answer.shadow)) {
        const isCandidate = name.endsWith(CANDIDATE)
        const tally = isCandidate ? candidates : shadow
        const policy = isCandidate ? name.slice(0, -CANDIDATE.length) : name
        const { wouldAllow, wouldDeny } = tally.get(policy) ?? { wouldAllow: 0, wouldDeny: 0 }
        tally.set(policy, {
          wouldAllow: wouldAllow + (allowed ? 1 : 0),
          wouldDeny: wouldDeny + (allowed ? 0 : 1),
        })
      }
    },
  }
}

/** A policy admits if all its limits do. */
function verdictsByPolicy(question: Question, verdicts: readonly Verdict[]): ReadonlyMap<string, boolean> {
  const byPolicy = new Map<string, boolean>()
  for (const [index, { allowed }] of verdicts.entries()) {
    const name = question.shadow[index]?.name ?? ''
    const policy = name.slice(0, name.indexOf('.'))
    byPolicy.set(policy, (byPolicy.get(policy) ?? true) && allowed)
  }
  return byPolicy
}
