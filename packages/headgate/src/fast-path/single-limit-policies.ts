import type { Policy } from '../policy/policies.js'
import { type IsOwnName, SingleLimitPolicy, type UnitDoor } from './single-limit-policy.js'

/** An ask that may be just the name of a policy. */
interface NamedAsk {
  readonly policy?: string | undefined
  readonly tier?: unknown
  readonly scope?: unknown
  readonly cost?: unknown
  readonly onStoreFailure?: unknown
  readonly also?: unknown
}

/** The single-limit policies of a limiter, by name. */
export class SingleLimitPolicies {
  private readonly byName = new Map<string, SingleLimitPolicy>()
  private lastName: string | undefined
  private lastPolicy: SingleLimitPolicy | undefined

  constructor(policies: ReadonlyMap<string, Policy>, door: UnitDoor, isOwnName: IsOwnName) {
    for (const [name, policy] of policies) {
      if (policy.limits.length === 1) this.byName.set(name, new SingleLimitPolicy(policy, door, isOwnName))
    }
  }

  /** Returns the policy of an ask that is just its name. */
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
