/**
 * Finds valid parts of a file that never take effect, as far as the file itself can tell. They are not rejected,
 * because an app may charge a policy by name or identify callers itself.
 */
import type { Limit } from '../algorithms/algorithm.js'
import { formatDurationUs } from '../algorithms/durations.js'
import { type TierOptions, tierLimits } from '../policy/tiers.js'
import { foldType } from '../subject/subject.js'
import type { Path, Warn } from './config-error.js'
import type { ReadFile } from './file/policy-file.js'
import { sound } from './shape/lists.js'
import { isMapLike, peekMap } from './shape/maps.js'

/** A limit, or the limits of one number of a tier, and its position in the file. */
interface Part {
  readonly path: Path
  readonly limits: readonly Limit[]
}

const TIER_NUMBERS = ['minute', 'hour', 'day'] as const
/** The types that are found if a file has no `identify`. */
const FOUND_BY_DEFAULT = ['apikey', 'ip']

/** Warns about every part that never takes effect. `value` is the file before it was read. */
export function findNeverEffective(file: ReadFile, value: unknown, warn: Warn): void {
  const written = peekMap(peekMap(value)?.get('policies'))
  for (const [name, policy] of file.policies ?? []) {
    const limits = sound(policy.limits)
    const path = ['policies', name, ...(isMapLike(written?.get(name)) ? ['limits'] : [])]
    warnOfIdleLimits(
      limits.map((limit, index) => ({ path: [...path, index], limits: [limit] })),
      warn,
    )
  }
  for (const [name, tier] of file.tiers ?? []) warnOfIdleLimits(tierParts(name, tier), warn)
  warnOfIdlePolicies(file, warn)
  if (file.identify === undefined) warnOfUnknownTypes(file, warn)
}

function tierParts(name: string, tier: TierOptions): Part[] {
  return TIER_NUMBERS.flatMap(field => {
    const number = tier[field]
    if (number === undefined) return []
    const burst = field === 'minute' && tier.burst !== undefined ? { burst: tier.burst } : {}
    return [{ path: ['tiers', name, field], limits: tierLimits({ [field]: number, ...burst }) }]
  })
}

/** If two limits make each other redundant, the first one written is kept. */
function warnOfIdleLimits(parts: readonly Part[], warn: Warn): void {
  for (const [index, part] of parts.entries()) {
    const stricter = parts.find(
      (other, at) =>
        other !== part && leavesNothing(other, part) && (at < index || !leavesNothing(part, other)),
    )
    const [limit] = stricter?.limits ?? []
    if (limit === undefined) continue
    warn(
      part.path,
      'WARN_HEADGATE_LIMIT_NEVER_BINDS',
      `never takes effect: ${words(limit)} beside it leaves nothing for it to deny`,
    )
  }
}

function leavesNothing(stricter: Part, part: Part): boolean {
  return (
    part.limits.length > 0 && part.limits.every(limit => stricter.limits.some(other => covers(other, limit)))
  )
}

/** Bans are left alone. */
function covers(stricter: Limit, limit: Limit): boolean {
  return stricter.limit > 0 && limit.limit > 0 && limit.algorithm.isCoveredBy(limit, stricter)
}

function words({ limit, quota }: Limit): string {
  return `${limit} in ${formatDurationUs(quota.windowUs)}`
}

function warnOfIdlePolicies(file: ReadFile, warn: Warn): void {
  const rules = sound(file.rules)
  const charges = [...rules, ...rules.flatMap(rule => sound(rule.also)), ...(file.subjects?.values() ?? [])]
  const charged = new Set([...charges, file.default, file.global].map(charge => charge?.policy))
  for (const name of file.policies?.keys() ?? []) {
    if (charged.has(name)) continue
    warn(
      ['policies', name],
      'WARN_HEADGATE_POLICY_NEVER_CHARGED',
      'no rule, subject, default or global charges it: only a request that asks for it by name does',
    )
  }
}

function warnOfUnknownTypes(file: ReadFile, warn: Warn): void {
  const isFound = (type: string) => FOUND_BY_DEFAULT.includes(foldType(type))
  const message = `a server finds ${FOUND_BY_DEFAULT.join(' and ')} alone where the file has no identify: only an app that says itself who is asking has such a subject`
  const code = 'WARN_HEADGATE_SUBJECT_NEVER_FOUND'
  for (const subject of file.subjects?.keys() ?? []) {
    if (!isFound(subject.slice(0, subject.indexOf(':')))) warn(['subjects', subject], code, message)
  }
  for (const [index, rule] of (file.rules ?? []).entries()) {
    const named = sound(rule?.match?.subject)
    if (named.length > 0 && !named.some(isFound)) warn(['rules', index, 'match', 'subject'], code, message)
    for (const [number, also] of (rule?.also ?? []).entries()) {
      if (also?.subject === undefined || isFound(also.subject)) continue
      warn(['rules', index, 'also', number, 'subject'], code, message)
    }
  }
}
