/** Limits between threads: an algorithm has functions, which cannot be sent, so it goes by its name. */
import type { Algorithm, Limit } from '../algorithms/algorithm.js'
import { allAlgorithms } from '../algorithms/all-algorithms.js'
import type { PolicyConfig } from '../policy/config.js'

type SentLimit = Omit<Limit, 'algorithm'> & { readonly algorithm: string }

/** A policy whose limits are of another type. */
type PolicyOf<L> = Omit<PolicyConfig, 'limits' | 'ban' | 'candidate'> & {
  readonly limits: readonly L[]
  readonly ban?: L
  readonly candidate?: readonly L[]
}

/** A policy as it is sent. */
export type SentPolicy = PolicyOf<SentLimit>

/** Writes the names of the algorithms into a policy that is to be sent. */
export function toSent(policy: PolicyConfig): SentPolicy {
  return mapLimits<Limit, SentLimit>(policy, limit => ({ ...limit, algorithm: limit.algorithm.name }))
}

/** Finds the algorithms of a policy that was sent. */
export function fromSent(policy: SentPolicy): PolicyConfig {
  return mapLimits<SentLimit, Limit>(policy, limit =>
    Object.freeze({ ...limit, algorithm: allAlgorithms.get(limit.algorithm) as Algorithm }),
  )
}

/** The fields keep their order, by which two configurations are compared. */
function mapLimits<From, To>(policy: PolicyOf<From>, change: (limit: From) => To): PolicyOf<To> {
  const { limits, ban, candidate } = policy
  return Object.assign({ ...policy } as object, {
    limits: limits.map(change),
    ...(ban !== undefined && { ban: change(ban) }),
    ...(candidate !== undefined && { candidate: candidate.map(change) }),
  }) as PolicyOf<To>
}
