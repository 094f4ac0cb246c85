import type { Limit } from '../engine/limit.js'
import { scaleLimit } from './change-numbers.js'
import type { PolicyConfig } from './config.js'
import { leaseChangedLimits } from './leases.js'
import type { NamedLimit, Policy } from './policies.js'

/** The file's settings for enforcing a policy. */
export type PolicySettings = Omit<PolicyConfig, 'limits'>

/** A policy as the fleet's multiplier has it. Scaled when it is first asked for: most of a large file is not. */
export class ConfiguredPolicy {
  private scaledPolicy: Policy | null = null
  private scaledCandidate: readonly NamedLimit[] | null = null

  constructor(
    /** As the file has it. */
    readonly unscaled: Policy,
    readonly settings: PolicySettings,
    private readonly factor: number,
  ) {}

  get policy(): Policy {
    this.scaledPolicy ??= scaled(this.unscaled, this.factor, this.settings)
    return this.scaledPolicy
  }

  /** The limits of its candidate, under names of their own. */
  get candidate(): readonly NamedLimit[] {
    this.scaledCandidate ??=
      this.factor === 0 ? [] : (this.settings.candidate ?? []).map(this.nameCandidate, this)
    return this.scaledCandidate
  }

  /** Other limits under the same settings. Those of a tier have neither leases nor candidates. */
  with(policy: Policy): ConfiguredPolicy {
    const { lease: _lease, candidate: _candidate, ...enforced } = this.settings
    const isOwn = policy.name === this.unscaled.name
    return new ConfiguredPolicy(policy, isOwn ? this.settings : enforced, this.factor)
  }

  private nameCandidate(limit: Limit): NamedLimit {
    // No policy can have a plus in its name: a candidate never meets a live limit's state.
    return { name: `${this.unscaled.name}+candidate.${limit.id}`, limit: scaleLimit(limit, this.factor) }
  }
}

/**
 * A multiplier of 0 pauses throttling, so nothing is left to ask but bans: a limit of 0 is not there to slow anybody
 * down, and a caller who was shut out must not come back in because the others are given room.
 */
function scaled(policy: Policy, factor: number, { lease }: PolicySettings): Policy {
  if (factor === 0) return { ...policy, limits: policy.limits.filter(({ limit }) => limit.limit === 0) }
  if (factor === 1 && lease === undefined) return policy
  // Leases are of the numbers in force.
  const limits = leaseChangedLimits(
    policy.limits.map(({ limit }) => scaleLimit(limit, factor)),
    lease,
  )
  return {
    ...policy,
    limits: policy.limits.map(({ name }, index) => ({ name, limit: limits[index] as Limit })),
  }
}
