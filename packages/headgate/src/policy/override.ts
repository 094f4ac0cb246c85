import type { Limit } from '../algorithms/algorithm.js'
import type { Duration } from '../algorithms/durations.js'
import { parseDurationUs } from '../algorithms/durations.js'
import { parseUnits } from '../algorithms/limit-options.js'
import { type HeadgateError, invalidOption } from '../errors/headgate-error.js'
import { rejectUnknown } from '../errors/reject-unknown.js'
import { shownName } from '../errors/shown-text.js'
import type { StoredSubject } from '../subject/subject.js'
import { isBan, type TierLimits } from './policies.js'
import type { TierOptions } from './tier-numbers.js'

/** The numbers that an override puts in place of the policy file's. What it does not name stays. */
export type Replacement =
  /** Another tier. */
  | { readonly tier: string }
  /** Other numbers for a minute, an hour, a day; `'unlimited'` lifts one. */
  | { readonly numbers: TierOptions }
  /** Other numbers for limits of the policy that applies, by their id: `{ 'log-1m': 500 }`. */
  | { readonly limits: Readonly<Record<string, number>> }
  /** Nothing at all. */
  | { readonly ban: true }

/**
 * Whose numbers are replaced: a subject's where no rule has limits of its own, a rule's, or a subject's on a rule; everybody's or
 * a subject's in a policy. A ban of a subject stands beside its other overrides.
 */
export type OverrideTarget = TargetOf<string>

/** A target as an operator may write it. */
export type MeantTarget = TargetOf<string | StoredSubject>

type TargetOf<Subject> =
  | {
      readonly subject: Subject
      readonly rule?: string
      readonly policy?: undefined
      readonly ban?: undefined
    }
  | {
      readonly subject: Subject
      readonly policy: string
      readonly rule?: undefined
      readonly ban?: undefined
    }
  | { readonly subject: Subject; readonly ban: true; readonly rule?: undefined; readonly policy?: undefined }
  | { readonly rule: string; readonly policy?: undefined; readonly ban?: undefined }
  | { readonly policy: string; readonly rule?: undefined; readonly ban?: undefined }

/** An override as an operator requests it. It always expires. */
export type OverrideOptions = MeantTarget &
  (
    | Replacement
    /** Another number for the limit of a policy that has only one. */
    | { readonly policy: string; readonly limit: number }
  ) & {
    readonly ttl: Duration
    /** The operator who set it. Default `code`. */
    readonly by?: string
    /** Default: none given. */
    readonly reason?: string
  }

/** An override in force. Secrets in `subject` have been replaced by their digest. */
export type Override = OverrideTarget &
  Replacement & {
    readonly by: string
    readonly reason: string
    /** Unix time in milliseconds, on the store's clock. */
    readonly setAt: number
    readonly expiresAt: number
  }

/** A longer override belongs in the policy file. */
const MAX_TTL_US = 31 * 86_400_000_000
const MAX_TEXT = 200
const KINDS = ['tier', 'numbers', 'limits', 'ban']
const FIELDS = ['subject', 'rule', 'policy', ...KINDS, 'limit', 'ttl', 'by', 'reason']

/** What an override may be about. */
export interface OverriddenLimits {
  readonly tierLimits: TierLimits | null
  /** The limits of a policy; throws for one that does not exist. */
  limitsOf(policy: string): readonly Limit[]
}

/** Validates an override, and returns the form it is stored in and for how long. Rejects mistakes by name. */
export function parseOverride(
  options: OverrideOptions,
  nameSubject: (subject: unknown) => string,
  { tierLimits, limitsOf }: OverriddenLimits,
): { readonly target: string; readonly stored: StoredOverride; readonly ttlMs: number } {
  const given = (typeof options === 'object' && options !== null ? options : {}) as Record<string, unknown>
  rejectUnknown(given, FIELDS, { before: 'override ' })
  const target = parseTarget(given, nameSubject)
  const ttlUs = parseDurationUs(given.ttl, 'override ttl', MAX_TTL_US)
  const by = parseText(given.by ?? 'code', 'by')
  const reason = parseText(given.reason ?? 'no reason given', 'reason')
  const named = given.limit === undefined ? given : soleLimit(given, target, limitsOf)
  const stored = { ...target, ...parseReplacement(named, tierLimits), by, reason } as StoredOverride
  return { target: targetKey(target), stored, ttlMs: Math.ceil(ttlUs / 1000) }
}

/** Names the limit of a policy that has only one. */
function soleLimit(
  { limit, ...given }: Readonly<Record<string, unknown>>,
  { policy }: OverrideTarget,
  limitsOf: (policy: string) => readonly Limit[],
): Record<string, unknown> {
  if (policy === undefined) throw invalid('policy', 'the policy whose limit is replaced', 'none')
  const ids = limitsOf(policy).flatMap(one => (isBan(one) ? [] : [one.id]))
  const [id = ''] = ids
  if (ids.length === 1) return { ...given, limits: { [id]: parseUnits(limit, 'override limit') } }
  throw invalid(
    'limits',
    `numbers for some of ${ids.join(', ')}: the policy ${policy} has several limits`,
    limit,
  )
}

/** The part of an override that is stored as JSON; its times are stored beside it. */
export type StoredOverride = OverrideTarget & Replacement & { readonly by: string; readonly reason: string }

/** Parses a stored override. Null if it cannot be understood, in which case the policy file applies. */
export function readStoredOverride(text: string, tierLimits: TierLimits | null): StoredOverride | null {
  try {
    const value = JSON.parse(text) as Record<string, unknown>
    const target = parseTarget(value, subject => parseText(subject, 'subject'))
    return {
      ...target,
      ...parseReplacement(value, tierLimits),
      by: parseText(value.by, 'by'),
      reason: parseText(value.reason, 'reason'),
    } as StoredOverride
  } catch {
    return null
  }
}

/** Returns the key of a target. There is one override per target, and a newer one replaces the older. */
export function targetKey(target: OverrideTarget): string {
  if (!('subject' in target))
    return target.policy === undefined ? `rule ${target.rule}` : `policy ${target.policy}`
  const { subject, rule, policy, ban } = target
  if (ban !== undefined) return `ban ${subject}`
  if (policy !== undefined) return `in ${JSON.stringify([subject, policy])}`
  return rule === undefined ? `subject ${subject}` : `both ${JSON.stringify([subject, rule])}`
}

/** Parses the target of an override: a subject, by the name it is stored under, a rule, or both. */
export function parseTarget(
  given: Readonly<Record<string, unknown>>,
  nameSubject: (subject: unknown) => string,
): OverrideTarget {
  const { subject, rule, policy, ban } = given
  if (subject === undefined && rule === undefined && policy === undefined) {
    throw invalid('target', 'a subject, a rule, a policy, or a subject and one of these', 'none')
  }
  if (ban !== undefined) {
    if (ban !== true) throw invalid('ban', 'true', ban)
    if (subject === undefined || rule !== undefined || policy !== undefined)
      throw invalid(
        'ban',
        'a subject and nothing else: a ban holds everywhere',
        rule ?? policy ?? 'no subject',
      )
    return { subject: nameSubject(subject), ban: true }
  }
  if (rule !== undefined && policy !== undefined) throw invalid('policy', 'none beside a rule', policy)
  const named = {
    ...(rule !== undefined && { rule: parseText(rule, 'rule') }),
    ...(policy !== undefined && { policy: parseText(policy, 'policy') }),
  }
  const whose = subject === undefined ? {} : { subject: nameSubject(subject) }
  return { ...whose, ...named } as Record<string, string> as unknown as OverrideTarget
}

/** Without tiers, numbers change nothing, whatever they are. */
function parseReplacement(given: Record<string, unknown>, tierLimits: TierLimits | null): Replacement {
  const kinds = KINDS.filter(kind => given[kind] !== undefined)
  if (kinds.length !== 1)
    throw invalid('replacement', `one of ${KINDS.join(', ')}`, kinds.join(' and ') || 'none')
  if (given.ban !== undefined) return { ban: true }
  if (given.tier !== undefined) return { tier: parseText(given.tier, 'tier') }
  if (given.numbers !== undefined) {
    tierLimits?.of(given.numbers as TierOptions)
    return { numbers: given.numbers as TierOptions }
  }
  const entries =
    typeof given.limits === 'object' && given.limits !== null ? Object.entries(given.limits) : []
  if (entries.length === 0 || Array.isArray(given.limits)) {
    throw invalid('limits', "an object of limit ids and numbers, such as { 'log-1m': 500 }", given.limits)
  }
  return {
    limits: Object.fromEntries(
      entries.map(([id, units]) => [id, parseUnits(units, `override limits.${shownName(id)}`)]),
    ),
  }
}

function parseText(value: unknown, field: string): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= MAX_TEXT) return value
  throw invalid(field, `a text of 1 to ${MAX_TEXT} characters`, value)
}

function invalid(field: string, expected: string, got: unknown): HeadgateError {
  return invalidOption(`override ${field}`, expected, got)
}
