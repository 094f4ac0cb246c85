import type { DecisionContext } from '../decision/decision.js'
import type { Recorder } from '../observe/statistics/recorder.js'
import type { Policy } from '../policy/policies.js'
import type { Stage } from '../store/stage.js'
import { type IsOwnName, SingleLimitPolicy } from './single-limit-policy.js'

/** An ask that can be nothing but the name of a policy. */
interface NamedAsk {
  readonly policy?: string | undefined
  readonly tier?: unknown
  readonly scope?: unknown
  readonly cost?: unknown
  readonly onStoreFailure?: unknown
  readonly also?: unknown
}

/** The policies of a limiter that have one limit, found by their name. */
export class SingleLimitPolicies {
  private readonly byName = new Map<string, SingleLimitPolicy>()
  private lastName: string | undefined
  private lastPolicy: SingleLimitPolicy | undefined

  constructor(
    policies: ReadonlyMap<string, Policy>,
    stage: Stage,
    context: DecisionContext,
    recorder: Recorder | null,
    isOwnName: IsOwnName,
  ) {
    for (const [name, policy] of policies) {
      const [only, more] = policy.limits
      if (only === undefined || more !== undefined) continue
      const oneUnit = stage.oneUnit?.(only.name, only.limit, isOwnName)
      const counted = recorder?.plain(policy, context.source) ?? null
      if (oneUnit !== undefined)
        this.byName.set(name, new SingleLimitPolicy(policy, oneUnit, context, counted))
    }
  }

  /** The policy of an ask that is nothing but its name. */
  policyFor(ask: NamedAsk): SingleLimitPolicy | undefined {
    if (typeof ask !== 'object' || ask === null) return
    if (ask.tier !== undefined || ask.scope !== undefined || ask.cost !== undefined) return
    if (ask.onStoreFailure !== undefined || ask.also !== undefined) return
    const name = ask.policy
    if (name !== this.lastName) {
      this.lastName = name
      this.lastPolicy = name === undefined ? undefined : this.byName.get(name)
    }
    return this.lastPolicy
  }
}
