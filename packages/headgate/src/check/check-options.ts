import { MAX_UNITS } from '../algorithms/algorithm.js'
import { invalidOption } from '../errors/headgate-error.js'
import { unknownName } from '../errors/reject-unknown.js'
import { wholeNumber } from '../errors/whole-number.js'
import type { SubjectInput } from '../subject/subject.js'
import type { FailureMode } from './check.js'

/** The policy or tier to check against, and the scope. */
export type CheckOptions<PolicyName extends string, TierName extends string> = (
  | { readonly policy: PolicyName; readonly tier?: undefined }
  | { readonly tier: TierName; readonly policy?: undefined }
) & {
  /** The scope; `global` is one budget for everything. */
  readonly scope?: string
  /** The cost of the request. Default 1. */
  readonly cost?: number
  /** Further subjects to charge, each under a policy of its own: all of them or none. */
  readonly also?: readonly AlsoCharged<PolicyName, TierName>[]
  /** The failure mode if the store cannot be asked. Default: the store's own (`local`). */
  readonly onStoreFailure?: FailureMode
}

/**
 * A further subject to charge, such as a user's organisation, and its policy. The scope is that of the request.
 */
export type AlsoCharged<PolicyName extends string, TierName extends string> = {
  readonly subject: SubjectInput
  /**
   * Gives it that many times the limits, in a budget apart from its own: for an address that pays for subjects that
   * anybody can make up.
   */
  readonly times?: number | undefined
  /** The units it takes. Default: the request's cost. */
  readonly cost?: number | undefined
} & (
  | { readonly policy: PolicyName; readonly tier?: undefined }
  | { readonly tier: TierName; readonly policy?: undefined }
)

const MAX_TIMES = 65_536

export function parseScope(scope: unknown): string {
  if (scope === undefined || scope === null) return 'global'
  if (typeof scope === 'string' && scope !== '') return scope
  throw invalidOption('scope', 'a non-empty string', scope)
}

/** Validates that exactly one policy or tier is named, and that it exists. */
export function parsePolicyOrTier<
  Named extends { readonly policy?: string | undefined; readonly tier?: string | undefined },
>(
  named: Named,
  known: { readonly policies: ReadonlyMap<string, unknown>; readonly tiers: ReadonlyMap<string, unknown> },
): Named {
  if (typeof named !== 'object' || named === null)
    throw invalidOption('options', '{ policy } or { tier }', named)
  const { policy, tier } = named
  if (policy === undefined && tier === undefined)
    throw invalidOption('policy', 'the name of a policy, or a tier instead', policy)
  if (policy !== undefined && tier !== undefined) throw invalidOption('tier', 'none beside a policy', tier)
  if (policy !== undefined && !known.policies.has(policy))
    throw unknownName('policy', policy, known.policies.keys(), 'ERR_HEADGATE_UNKNOWN_POLICY')
  if (tier !== undefined && !known.tiers.has(tier))
    throw unknownName('tier', tier, known.tiers.keys(), 'ERR_HEADGATE_UNKNOWN_TIER')
  return named
}

/** Validates the further subjects of an ask. */
export function parseAlso<P extends string, T extends string>({
  also,
}: CheckOptions<P, T>): readonly AlsoCharged<P, T>[] {
  if (also === undefined) return NOBODY_ELSE
  if (Array.isArray(also)) return also
  throw invalidOption('also', 'a list of { subject, policy }', also)
}

/** Validates by how much a shared budget is higher than one of its own. */
export function parseTimes(times: unknown): number {
  return wholeNumber(times, 'times', 1, MAX_TIMES)
}

const NOBODY_ELSE: readonly never[] = []

export function parseCost(cost: unknown, field = 'cost'): number {
  return wholeNumber(cost, field, 0, MAX_UNITS, 'ERR_HEADGATE_INVALID_COST')
}
