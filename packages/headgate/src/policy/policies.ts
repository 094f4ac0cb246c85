import { isLimit, type Limit } from '../algorithms/algorithm.js'
import { unexpected } from '../errors/headgate-error.js'
import type { HeaderStyle } from './config.js'
import { type LeaseOptions, leaseLimits } from './leases.js'
import type { RefundRule } from './refund-rule.js'
import { type TierOptions, tierLimits } from './tiers.js'

/** A named list of limits, charged together, all or none. A single limit stands for a list of one. */
export type PolicyOptions = Limit | readonly Limit[] | LeasedPolicyOptions

/** A policy whose hot keys may take units in advance. */
export interface LeasedPolicyOptions {
  readonly limits: Limit | readonly Limit[]
  /** `auto`, or a maximum size and duration; `off`, the default, never takes units in advance. */
  readonly lease?: LeaseOptions
}

/** A validated policy: its limits, each with the name its state is kept under. */
export interface Policy {
  readonly name: string
  readonly tier: string | null
  readonly limits: readonly NamedLimit[]
}

/** A policy with the facts that only a gate knows about a decision. */
export interface DecidedPolicy extends Policy {
  /** The rule that applied. */
  readonly rule: string | null
  /** Why no limit was asked; null if one was. */
  readonly unasked: 'disabled' | 'paused' | 'skipped' | 'shadow' | null
  /** How quotas are advertised, if the policy file says so. */
  readonly headers: HeaderStyle | null
  /** The responses that give back what was charged; null if none does. */
  readonly refundIf: RefundRule | null
}

/** A limit and the name its state is kept under: `<policy>.<limit id>`. */
export interface NamedLimit {
  readonly name: string
  readonly limit: Limit
}

// Needs no escaping in an HTTP structured header or a Redis key.
const NAME = /^[A-Za-z0-9_-]{1,32}$/
/** The name all tiers share, so that a caller who changes tier keeps its usage. */
export const TIER_POLICY = 'tier'

/** Validates named policies. Refuses duplicate limits and names that cannot be part of a key. */
export function parsePolicies(
  policies: Readonly<Record<string, PolicyOptions>>,
): ReadonlyMap<string, Policy> {
  const parsed = new Map<string, Policy>()
  for (const [name, options] of Object.entries(policies)) parsed.set(name, parsePolicy(name, options))
  return parsed
}

/** Validates one policy. */
export function parsePolicy(name: string, options: PolicyOptions): Policy {
  refuseName('policies', name)
  if (name === TIER_POLICY)
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', 'policies', `a name other than '${TIER_POLICY}'`, name)
  const limits = limitsOf(`policies.${name}`, options)
  if (limits.length === 0)
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', `policies.${name}`, 'at least one limit', limits)
  return { name, tier: null, limits: nameLimits(`policies.${name}`, name, limits) }
}

function limitsOf(field: string, options: PolicyOptions): readonly Limit[] {
  if (Array.isArray(options)) return options
  if (typeof options !== 'object' || options === null || !('limits' in options)) return [options as Limit]
  const unknown = Object.keys(options).find(key => key !== 'limits' && key !== 'lease')
  if (unknown !== undefined)
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', `${field}.${unknown}`, 'one of limits, lease', unknown)
  return leaseLimits(`${field}.lease`, limitsOf(field, options.limits), options.lease)
}

/** Validates named tiers and turns them into policies. A tier without limits is unlimited. */
export function parseTiers(tiers: Readonly<Record<string, TierOptions>>): ReadonlyMap<string, Policy> {
  const parsed = new Map<string, Policy>()
  for (const [tier, options] of Object.entries(tiers)) parsed.set(tier, parseTier(tier, options))
  return parsed
}

/** Validates one tier. */
export function parseTier(tier: string, options: TierOptions): Policy {
  refuseName('tiers', tier)
  const limits = nameLimits(`tiers.${tier}`, TIER_POLICY, tierLimits(options))
  return { name: TIER_POLICY, tier, limits }
}

function nameLimits(field: string, policy: string, limits: readonly Limit[]): NamedLimit[] {
  const seen = new Set<string>()
  return limits.map((limit, index) => {
    if (!isLimit(limit)) {
      throw unexpected(
        'ERR_HEADGATE_INVALID_POLICY',
        `${field}[${index}]`,
        'a limit made by slidingWindowLog() and its like',
        limit,
      )
    }
    if (seen.has(limit.id)) {
      throw unexpected(
        'ERR_HEADGATE_INVALID_POLICY',
        `${field}[${index}]`,
        `a limit unlike the others, or a name for it ('${limit.id}' is taken)`,
        limit,
      )
    }
    seen.add(limit.id)
    return { name: `${policy}.${limit.id}`, limit }
  })
}

function refuseName(field: string, name: string): void {
  if (!NAME.test(name))
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', field, 'names of up to 32 letters, digits, - or _', name)
}
