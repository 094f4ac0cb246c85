/** What an override would change, worked out by resolving with it and without it; one that changes nothing is refused. */
import { HeadgateError, show } from '../errors/headgate-error.js'
import { ActiveOverride } from './active-override.js'
import type { ActivePolicies } from './active-policies.js'
import type { Level } from './level.js'
import { type OverrideTarget, type StoredOverride, targetKey } from './override.js'
import { isBan, type PolicyLimit } from './policies.js'

export interface OverrideEffect {
  readonly changes: readonly ChangedLimits[]
  /** Rules with limits of their own, which the override of a subject does not change. */
  readonly unchanged: readonly string[]
}

/** The limits of one policy, in words, now and with the override. */
export interface ChangedLimits {
  /** The rule's name, the part of the file, or `asked` for a policy that is asked by name. */
  readonly rule: string
  readonly policy: string
  readonly tier: string | null
  readonly now: readonly string[]
  readonly after: readonly string[]
}

/** Whose limits an override replaces. */
export interface Concerned {
  readonly levels: readonly Level[]
  /** Rules with limits of their own, and the ids of these. */
  readonly otherRules: ReadonlyMap<string, readonly string[]>
  /** Policies that its rules charge beside their own, and the ids of their limits: these are overridden by the policy's name. */
  readonly otherPolicies: ReadonlyMap<string, readonly string[]>
}

/** Finds the levels that a target is about, always the same ones in the same order. */
export type FindConcerned = (active: ActivePolicies, target: OverrideTarget) => Concerned

/** Returns what an override would change. Throws for one that can change nothing, naming what could. */
export function effectOf(
  active: ActivePolicies,
  stored: StoredOverride,
  find: FindConcerned,
): OverrideEffect {
  if (stored.ban !== undefined) return { changes: [], unchanged: [] }
  const key = targetKey(stored)
  const given = (override: ActiveOverride | null): ActivePolicies => ({
    ...active,
    overrides: {
      size: 1,
      find: (target, nowUs) => (target === key ? override : active.overrides.find(target, nowUs)),
      leftUs: (target, nowUs) => active.overrides.leftUs(target, nowUs),
    },
  })
  const without = find(given(null), stored)
  rejectUnknownLimits(stored, without)
  rejectBurst(stored, without)
  const after = find(given(new ActiveOverride({ ...stored, setAt: 0, expiresAt: 0 })), stored).levels
  const now = find(active, stored).levels
  const hasEffect = without.levels.some(
    (level, index) => words(level, 'unscaled') !== words(after[index], 'unscaled'),
  )
  if (!hasEffect) throw ineffective(stored, without)
  // While paused the limits in force are none, which says nothing about the numbers.
  const shown = active.control.multiplier === 0 ? 'unscaled' : 'policy'
  const changes = new Map<string, ChangedLimits>()
  for (const [index, level] of now.entries()) {
    const changed = {
      rule: level.rule,
      policy: level.configured.policy.name,
      tier: level.configured.policy.tier,
      now: linesOf(level, shown),
      after: linesOf(after[index], shown),
    }
    if (words(without.levels[index], 'unscaled') !== words(after[index], 'unscaled')) {
      changes.set(JSON.stringify(changed), changed)
    }
  }
  return { changes: [...changes.values()], unchanged: [...without.otherRules.keys()] }
}

function linesOf(level: Level | undefined, which: 'policy' | 'unscaled'): readonly string[] {
  return (level?.configured[which].limits ?? []).map(({ limit }) => limit.algorithm.describe(limit))
}

function words(level: Level | undefined, which: 'policy' | 'unscaled'): string {
  return linesOf(level, which).join()
}

/** A limit that does not exist would take effect on the day it does. */
function rejectUnknownLimits(stored: StoredOverride, { levels, otherRules, otherPolicies }: Concerned): void {
  if (!('limits' in stored)) return
  const known = idsOf(levels.flatMap(({ configured }) => configured.unscaled.limits))
  const unknown = Object.keys(stored.limits).find(id => !known.has(id))
  if (unknown === undefined) return
  const rules = ownersOf(unknown, otherRules)
  const policies = ownersOf(unknown, otherPolicies)
  const where = stored.rule === undefined ? 'beside the subject' : 'in place of the rule'
  const hints = [
    ...(rules === '' ? [] : [`, or beside the subject a rule that has it (${rules})`]),
    ...(policies === '' ? [] : [`, or ${where} a policy that has it (${policies})`]),
  ]
  throw refusal('limits', `one of ${[...known].join(', ') || 'none'}${hints.join('')}`, show(unknown))
}

function ownersOf(id: string, owners: ReadonlyMap<string, readonly string[]>): string {
  return [...owners].flatMap(([owner, ids]) => (ids.includes(id) ? [owner] : [])).join(', ')
}

/** Only a tier has a burst; other policies write theirs as limits. */
function rejectBurst(stored: StoredOverride, { levels }: Concerned): void {
  if (!('numbers' in stored) || stored.numbers.burst === undefined) return
  if (levels.some(({ configured }) => configured.unscaled.numbers !== undefined)) return
  throw refusal('numbers.burst', 'none for a policy, which has limits of its own', show(stored.numbers.burst))
}

function ineffective(stored: StoredOverride, { levels, otherRules }: Concerned): HeadgateError {
  if (levels.length === 0 && otherRules.size > 0) {
    const expected = `one of ${[...otherRules.keys()].join(', ')} beside the subject: they decide all its requests`
    return refusal('rule', expected, 'none')
  }
  if (levels.every(({ rule }) => rule === 'asked') && !('limits' in stored)) {
    const ids = [...idsOf(levels.flatMap(({ configured }) => configured.unscaled.limits))]
    return refusal('limits', `numbers for ${ids.join(', ')}`, 'none')
  }
  const inForce = levels.flatMap(level => linesOf(level, 'unscaled'))
  return refusal('replacement', `other numbers than those in force (${inForce.join(', ')})`, 'the same')
}

function idsOf(limits: readonly PolicyLimit[]): ReadonlySet<string> {
  return new Set(limits.flatMap(({ limit }) => (isBan(limit) ? [] : [limit.id])))
}

function refusal(field: string, expected: string, got: string): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_INVALID_OPTION', { field: `override ${field}`, expected, got })
}
