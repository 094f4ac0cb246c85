import type { Limit } from '../algorithms/algorithm.js'
import { scaleLimit } from './change-numbers.js'
import type { PolicyConfig } from './config.js'
import { leaseChangedLimits } from './leases.js'
import { isBan, type Policy, type PolicyLimit } from './policies.js'
import { sharedLimits } from './wider-limit.js'

/** How the file wants a policy enforced. */
export type PolicySettings = Omit<PolicyConfig, 'limits' | 'ban'>

/** A policy scaled by the fleet's multiplier. Scaled on first use, because most of a large file is never used. */
export class ConfiguredPolicy {
  private scaledPolicy: Policy | null = null
  private scaledCandidate: readonly PolicyLimit[] | null = null
  private readonly byTimes = new Map<number, ConfiguredPolicy>()

  constructor(
    /** As in the file. */
    readonly unscaled: Policy,
    readonly settings: PolicySettings,
    private readonly factor: number,
  ) {}

  get policy(): Policy {
    this.scaledPolicy ??= scaled(this.unscaled, this.factor, this.settings)
    return this.scaledPolicy
  }

  /** The limits on trial, under names of their own. */
  get candidate(): readonly PolicyLimit[] {
    this.scaledCandidate ??=
      this.factor === 0 ? [] : (this.settings.candidate ?? []).map(this.nameCandidate, this)
    return this.scaledCandidate
  }

  /** Returns other limits under the same settings. The limits of a tier have neither leases nor candidates. */
  with(policy: Policy): ConfiguredPolicy {
    const { lease: _lease, candidate: _candidate, ...enforced } = this.settings
    const isOwn = policy.name === this.unscaled.name
    return new ConfiguredPolicy(policy, isOwn ? this.settings : enforced, this.factor)
  }

  /** Returns the limits that several subjects share, `times` as high, under the same settings. */
  times(times: number): ConfiguredPolicy {
    let shared = this.byTimes.get(times)
    if (shared === undefined) {
      const limits = sharedLimits(this.unscaled.limits, times)
      shared = this.with({ ...this.unscaled, name: `${this.unscaled.name}/shared`, limits })
      this.byTimes.set(times, shared)
    }
    return shared
  }

  private nameCandidate(limit: Limit): PolicyLimit {
    // No policy name contains a plus, so a candidate never shares state with a live limit.
    return { name: `${this.unscaled.name}+candidate.${limit.id}`, limit: scaleLimit(limit, this.factor) }
  }
}

/**
 * A multiplier of 0 pauses throttling, so that only bans remain: a limit of 0 is not meant to slow anybody down,
 * and a banned caller must not be let in because the others are given room.
 */
function scaled(policy: Policy, factor: number, { lease }: PolicySettings): Policy {
  if (factor === 0) return { ...policy, limits: policy.limits.filter(({ limit }) => isMeantToBan(limit)) }
  if (factor === 1 && lease === undefined) return policy
  // Leases are sized by the scaled numbers.
  const limits = leaseChangedLimits(
    policy.limits.map(({ limit }) => scaleLimit(limit, factor)),
    lease,
  )
  return {
    ...policy,
    limits: policy.limits.map(({ name }, index) => ({ name, limit: limits[index] as Limit })),
  }
}

function isMeantToBan(limit: Limit): boolean {
  return limit.limit === 0 || isBan(limit)
}
