import type { Duration } from '../algorithms/durations.js'
import { parseDurationUs } from '../algorithms/durations.js'
import { parseUnits } from '../algorithms/limit-options.js'
import { type HeadgateError, unexpected } from '../errors/headgate-error.js'
import { shownName } from '../errors/shown-text.js'
import type { StoredSubject } from '../subject/subject.js'
import { type TierOptions, tierLimits } from './tiers.js'

/** The numbers that an override puts in place of the policy file's. What it does not name stays. */
export type Replacement =
  /** Another tier. */
  | { readonly tier: string }
  /** Other numbers for a minute, an hour, a day; `'unlimited'` lifts one. */
  | { readonly numbers: TierOptions }
  /** Other numbers for limits of the policy that applies, by their id: `{ 'log-1m': 500 }`. */
  | { readonly limits: Readonly<Record<string, number>> }

/** Whose numbers are replaced: a subject's where no rule has limits of its own, a rule's, or a subject's on a rule. */
export type OverrideTarget = { readonly subject: string; readonly rule?: string } | { readonly rule: string }

/** A target as an operator may write it. */
export type MeantTarget =
  | { readonly subject: string | StoredSubject; readonly rule?: string }
  | { readonly rule: string }

/** An override as an operator requests it. It always expires. */
export type OverrideOptions = MeantTarget &
  Replacement & {
    readonly ttl: Duration
    /** The operator who set it. */
    readonly by: string
    readonly reason: string
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
const KINDS = ['tier', 'numbers', 'limits']
const FIELDS = ['subject', 'rule', ...KINDS, 'ttl', 'by', 'reason']

/** Validates an override, and returns the form it is stored in and for how long. Rejects mistakes by name. */
export function parseOverride(
  options: OverrideOptions,
  nameSubject: (subject: unknown) => string,
): { readonly target: string; readonly stored: StoredOverride; readonly ttlMs: number } {
  const given = (typeof options === 'object' && options !== null ? options : {}) as Record<string, unknown>
  const unknown = Object.keys(given).find(key => !FIELDS.includes(key))
  if (unknown !== undefined) throw invalid(shownName(unknown), `one of ${FIELDS.join(', ')}`, unknown)
  const target = parseTarget(given, nameSubject)
  const ttlUs = parseDurationUs(given.ttl, 'override ttl', MAX_TTL_US)
  const by = parseText(given.by, 'by')
  const reason = parseText(given.reason, 'reason')
  const stored = { ...target, ...parseReplacement(given), by, reason }
  return { target: targetKey(target), stored, ttlMs: Math.ceil(ttlUs / 1000) }
}

/** The part of an override that is stored as JSON; its times are stored beside it. */
export type StoredOverride = OverrideTarget & Replacement & { readonly by: string; readonly reason: string }

/** Parses a stored override. Null if it cannot be understood, in which case the policy file applies. */
export function readStoredOverride(text: string): StoredOverride | null {
  try {
    const value = JSON.parse(text) as Record<string, unknown>
    const target = parseTarget(value, subject => parseText(subject, 'subject'))
    return {
      ...target,
      ...parseReplacement(value),
      by: parseText(value.by, 'by'),
      reason: parseText(value.reason, 'reason'),
    }
  } catch {
    return null
  }
}

/** Returns the key of a target. There is one override per target, and a newer one replaces the older. */
export function targetKey(target: OverrideTarget): string {
  if (!('subject' in target)) return `rule ${target.rule}`
  const { subject, rule } = target
  return rule === undefined ? `subject ${subject}` : `both ${JSON.stringify([subject, rule])}`
}

/** Parses the target of an override: a subject, by the name it is stored under, a rule, or both. */
export function parseTarget(
  given: Readonly<Record<string, unknown>>,
  nameSubject: (subject: unknown) => string,
): OverrideTarget {
  const { subject, rule } = given
  if (subject === undefined && rule === undefined) {
    throw invalid('target', 'a subject, a rule or both', 'neither')
  }
  const named = rule === undefined ? null : { rule: parseText(rule, 'rule') }
  return subject === undefined ? (named as { rule: string }) : { subject: nameSubject(subject), ...named }
}

function parseReplacement(given: Record<string, unknown>): Replacement {
  const kinds = KINDS.filter(kind => given[kind] !== undefined)
  if (kinds.length !== 1)
    throw invalid('replacement', `one of ${KINDS.join(', ')}`, kinds.join(' and ') || 'none')
  if (given.tier !== undefined) return { tier: parseText(given.tier, 'tier') }
  if (given.numbers !== undefined) {
    tierLimits(given.numbers as TierOptions)
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
  return unexpected('ERR_HEADGATE_INVALID_OPTION', `override ${field}`, expected, got)
}
