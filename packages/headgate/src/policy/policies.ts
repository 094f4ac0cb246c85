import { isLimit, type Limit } from '../algorithms/algorithm.js'
import type { BanLimit } from '../algorithms/ban.js'
import type { FailureMode } from '../check/check.js'
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import { nearestName } from '../errors/nearest-name.js'
import { rejectUnknown } from '../errors/reject-unknown.js'
import type { WrittenPolicies } from './active-policies.js'
import { type Mode, type PolicyConfig, parseFailureMode } from './config.js'
import { type LeaseOptions, leaseLimits } from './leases.js'
import type { TierOptions } from './tier-numbers.js'
import type { Tier } from './tiers.js'

/** A named list of limits, charged together, all or none. A single limit stands for a list of one. */
export type PolicyOptions = Limit | readonly Limit[] | LongPolicyOptions

/** A policy with settings of its own. */
export interface LongPolicyOptions {
  readonly limits: Limit | readonly Limit[]
  /** `auto`, or a maximum size and duration; `off`, the default, never takes units in advance. */
  readonly lease?: LeaseOptions
  /** Limits on trial: evaluated and reported in the same call as the live ones, never enforced. */
  readonly candidate?: Limit | readonly Limit[]
  /** Bans who is denied too often, for longer each time: what `ban()` returns. */
  readonly ban?: BanLimit
  /** `shadow` evaluates and counts, and never denies. Default `enforce`. */
  readonly mode?: Mode
  /** The percentage of subjects that are limited; the others are in shadow. */
  readonly enforce?: `${number}%`
  /** The failure mode if the store cannot be asked. Default: the store's own (`local`). */
  readonly onStoreFailure?: FailureMode
}

/** A validated policy: its limits, each with the name its state is kept under. */
export interface Policy {
  readonly name: string
  readonly tier: string | null
  readonly limits: readonly PolicyLimit[]
  /** The numbers of a tier, as written. */
  readonly numbers?: TierOptions
}

/** A limit and the name its state is kept under: `<policy>.<limit id>`. */
export interface PolicyLimit {
  readonly name: string
  readonly limit: Limit
}

// Needs no escaping in an HTTP structured header or a Redis key.
const NAME = /^[A-Za-z0-9_-]{1,32}$/
/** The name all tiers share, so that a caller who changes tier keeps its usage. */
export const TIER_POLICY = 'tier'

/** Where a tier carries what makes its limits, as a limit carries its algorithm: who has no tiers bundles none of it. */
export const TIER_LIMITS: unique symbol = Symbol.for('headgate.tier')

export interface TierLimits {
  /** Makes the limits of a tier, which are charged together. Throws for numbers that are none. */
  of(tier: TierOptions): readonly Limit[]
  /** A tier with some of its numbers replaced, or another policy with limits of these numbers. */
  replace(policy: Policy, numbers: TierOptions): Policy
}

/** Validates the policies and tiers of a program. Rejects duplicate limits and names that cannot be part of a key. */
export function writtenPolicies(
  policies: Readonly<Record<string, PolicyOptions>>,
  tiers: Readonly<Record<string, Tier>>,
): WrittenPolicies {
  const parsed = new Map<string, Policy>()
  const settings = new Map<string, PolicyConfig>()
  for (const [name, options] of Object.entries(policies)) {
    const read = readSettings(`policies.${name}`, options)
    parsed.set(name, parsePolicy(name, read.limits, read.ban))
    settings.set(name, read)
  }
  const parsedTiers = new Map<string, Policy>()
  let tierLimits: TierLimits | null = null
  for (const [name, tier] of Object.entries(tiers)) {
    tierLimits = tier?.[TIER_LIMITS] ?? null
    if (tierLimits === null)
      throw unexpected('ERR_HEADGATE_INVALID_POLICY', `tiers.${name}`, 'a tier made by tier()', tier)
    parsedTiers.set(name, parseTier(name, tier, tierLimits.of(tier)))
  }
  if (parsed.size + parsedTiers.size === 0)
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'policies',
      expected: 'at least one policy or tier',
      got: 'none',
    })
  const config = {
    policies: Object.fromEntries(settings),
    levels: 'most-specific',
    mode: 'enforce',
    enforcePercent: 100,
  } as const
  return { config, policies: parsed, tiers: parsedTiers, tierLimits }
}

/** Validates one policy. Its ban is one more limit, which the others charge. */
export function parsePolicy(name: string, limits: readonly Limit[], ban?: Limit): Policy {
  rejectName('policies', name)
  if (name === TIER_POLICY)
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', 'policies', `a name other than '${TIER_POLICY}'`, name)
  if (limits.length === 0)
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', `policies.${name}`, 'at least one limit', limits)
  const named = nameLimits(`policies.${name}`, name, limits)
  if (ban === undefined) return { name, tier: null, limits: named }
  if (!isLimit(ban) || !isBan(ban))
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', `policies.${name}.ban`, 'what ban() returns', ban)
  return { name, tier: null, limits: [...named, { name: `${name}.${ban.id}`, limit: ban }] }
}

/** Whether it is charged by the denials of the limits beside it, and not by asking. */
export function isBan({ algorithm }: Limit): boolean {
  return algorithm.strikes !== undefined
}

const SETTINGS = ['limits', 'ban', 'lease', 'candidate', 'mode', 'enforce', 'onStoreFailure']

function readSettings(field: string, options: PolicyOptions): PolicyConfig {
  if (Array.isArray(options)) return { limits: options }
  if (!isLong(options)) {
    if (!isLimit(options) || isBan(options)) throw noLimit(field, options)
    return { limits: [options] }
  }
  rejectUnknown(options, SETTINGS, { code: 'ERR_HEADGATE_INVALID_POLICY', before: `${field}.` })
  if (options.limits === undefined) throw noLimit(`${field}.limits`, options.limits)
  const limits = [options.limits].flat() as readonly Limit[]
  const { ban, lease, candidate, mode, enforce, onStoreFailure } = options
  nameLimits(field, 'lease', limits)
  leaseLimits(`${field}.lease`, limits, lease)
  // Every request is held to a ban: none may be decided from units that were taken in advance.
  if (ban !== undefined && lease !== undefined && lease !== 'off')
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', `${field}.lease`, 'none beside a ban', lease)
  const trial = candidate === undefined ? undefined : ([candidate].flat() as readonly Limit[])
  if (trial !== undefined) nameLimits(`${field}.candidate`, 'candidate', trial)
  if (mode !== undefined && enforce !== undefined)
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', `${field}.enforce`, 'none beside mode', enforce)
  return {
    limits,
    ...(ban !== undefined && { ban }),
    ...(lease !== undefined && { lease }),
    ...(trial !== undefined && { candidate: trial }),
    ...(mode !== undefined && { mode: parseMode(`${field}.mode`, mode) }),
    ...(enforce !== undefined && { enforcePercent: parsePercent(`${field}.enforce`, enforce) }),
    ...(onStoreFailure !== undefined && { onStoreFailure: parseFailureMode(onStoreFailure) }),
  }
}

/** Whether it has settings, or limits under a misspelt name. */
function isLong(options: unknown): options is LongPolicyOptions {
  if (typeof options !== 'object' || options === null || isLimit(options)) return false
  return Object.entries(options).some(
    ([name, value]) =>
      SETTINGS.includes(name) || ([value].flat().every(isLimit) && nearestName(name, SETTINGS) !== null),
  )
}

function noLimit(field: string, got: unknown): HeadgateError {
  const expected = 'a limit made by slidingWindowLog() and its like'
  return unexpected('ERR_HEADGATE_INVALID_POLICY', field, expected, got)
}

function parseMode(field: string, mode: unknown): Mode {
  if (mode === 'enforce' || mode === 'shadow' || mode === 'compare') return mode
  throw unexpected('ERR_HEADGATE_INVALID_POLICY', field, "'enforce', 'shadow' or 'compare'", mode)
}

function parsePercent(field: string, text: unknown): number {
  const percent =
    typeof text === 'string' && /^\d{1,3}(?:\.\d{1,3})?%$/.test(text) ? Number(text.slice(0, -1)) : 101
  if (percent <= 100) return percent
  throw unexpected('ERR_HEADGATE_INVALID_POLICY', field, "a percentage from '0%' to '100%'", text)
}

/** Validates one tier, whose numbers come to these limits. */
export function parseTier(tier: string, numbers: TierOptions, limits: readonly Limit[]): Policy {
  rejectName('tiers', tier)
  return { name: TIER_POLICY, tier, limits: nameLimits(`tiers.${tier}`, TIER_POLICY, limits), numbers }
}

function nameLimits(field: string, policy: string, limits: readonly Limit[]): PolicyLimit[] {
  const seen = new Set<string>()
  return limits.map((limit, index) => {
    if (!isLimit(limit) || isBan(limit)) throw noLimit(`${field}[${index}]`, limit)
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

function rejectName(field: string, name: string): void {
  if (!NAME.test(name))
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', field, 'names of up to 32 letters, digits, - or _', name)
}
