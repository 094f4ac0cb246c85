/**
 * Finds settings that are valid one by one but cannot all be meant, because they contradict each other or could
 * never take effect. A file that seems to do more than it does is worse than one that is rejected.
 */

import type { Mode } from '../policy/config.js'
import { PathIndex } from '../policy/path-index.js'
import { defaultTiers, type TierOptions, tierLimits } from '../policy/tiers.js'
import { parseCostKey } from './file/path-pattern.js'
import type { ReadPolicy } from './file/policy.js'
import type { ReadFile } from './file/policy-file.js'
import type { ReadRule } from './file/rule.js'
import { compileMatch, ruleName } from './rule-match.js'
import { sound } from './shape/lists.js'
import type { Place } from './shape/shape.js'

/** Reports every contradiction in a file. */
export function findContradictions(file: ReadFile, top: Place): void {
  checkEnforcement(file, top)
  if (file.global !== undefined) checkGlobal(file, top.below('global'))
  for (const [name, policy] of file.policies ?? []) {
    checkEnforcement(policy, top.below('policies').below(name))
  }
  checkRules(file, top.below('rules'))
  checkCosts(file, top.below('costs'))
  checkRoutes(file, top.below('routes'))
  if ((file.levels ?? 'most-specific') !== 'most-specific') checkOneDecider(file, top)
}

interface Enforced {
  readonly mode?: Mode
  readonly enforce?: number
  readonly onStoreFailure?: unknown
}

/** A percentage without a mode implies `enforce`. */
function checkEnforcement({ mode, enforce, onStoreFailure }: Enforced, place: Place): void {
  if (enforce !== undefined && mode !== undefined && mode !== 'enforce') {
    place.below('enforce').reject({ expected: 'mode: enforce beside it, or no mode', got: `mode: ${mode}` })
  }
  if (mode === 'compare' && onStoreFailure !== undefined) {
    const expected = 'another mode beside it, since compare never waits for the store'
    place.below('onStoreFailure').reject({ expected, got: 'mode: compare' })
  }
}

function checkGlobal(file: ReadFile, place: Place): void {
  if (file.global !== undefined) checkEnforcement(file.global, place)
  if ((file.levels ?? 'most-specific') !== 'most-specific') return
  const expected =
    'levels: all or first-available beside it, since most-specific always finds the caller first'
  const got = file.levels === undefined ? 'no levels' : 'levels: most-specific'
  place.reject({ expected, got }, 'key')
}

function checkRules(file: ReadFile, place: Place): void {
  const mostOf = mostByName(file)
  // Route rules and caller rules are on different levels, so they do not hide each other.
  const above = { route: new PathIndex<string>(false), caller: new PathIndex<string>(false) }
  const names = new Set<string>()
  for (const [index, rule] of (file.rules ?? []).entries()) {
    if (rule?.match === undefined) continue
    const here = place.below(index)
    const name = ruleName(rule)
    const { level, pattern, lists } = compileMatch(rule.match)
    const cover = above[level].cover(pattern, lists)
    if (cover !== null) {
      const expected = 'a rule that can match'
      here.reject({ expected, got: `one that "${cover.value}" above it leaves nothing for` })
    } else if (names.has(name)) {
      here.below('name').reject({ expected: 'a name that no rule above has', got: `"${name}" again` })
    }
    above[level].add(pattern, lists, name)
    names.add(name)
    checkRule(rule, here, mostOf)
  }
}

function checkRule(rule: ReadRule, place: Place, mostOf: MostByName): void {
  checkEnforcement(rule, place)
  if (rule.per === 'everyone' && rule.policy === undefined) {
    const got = rule.tier === undefined ? 'none' : 'a tier, which each caller has alone'
    place.below('per').reject({ expected: 'a policy beside it that all callers share', got })
  }
  const { most, words } = mostFor(rule, mostOf)
  if (rule.cost !== undefined && most > 0 && rule.cost > most) {
    const expected = `at most ${most}, which is all that ${words} ever has`
    place.below('cost').reject({ expected, got: String(rule.cost) })
  }
}

/** The first matching key wins, so a wider one above hides it. */
function checkCosts(file: ReadFile, place: Place): void {
  const above = new PathIndex<string>(false)
  for (const key of file.costs?.keys() ?? []) {
    const { method, path } = parseCostKey(key)
    const { pattern, lists } = compileMatch({ path, ...(method !== null && { method: [method] }) })
    const cover = above.cover(pattern, lists)
    if (cover !== null) {
      const got = `one that "${cover.value}" above it leaves nothing for`
      place.below(key).reject({ expected: 'a route that can match', got }, 'key')
    }
    above.add(pattern, lists, key)
  }
}

/** The most specific route wins whatever the order, so two for the same requests cannot both be meant. */
function checkRoutes(file: ReadFile, place: Place): void {
  const seen = new Set<string>()
  for (const [index, route] of (file.routes ?? []).entries()) {
    if (route?.match === undefined) continue
    const { host, path = '' } = route.match
    const hosts = host === undefined ? [''] : sound(host)
    const here = place.below(index).below('match')
    // Its mistakes were reported when it was read.
    if (host === undefined && path === '') continue
    for (const name of hosts) {
      const key = `${name}${path}`
      if (seen.has(key))
        here.reject({ expected: 'requests that no route above is for', got: 'the same again' })
      seen.add(key)
    }
  }
}

/** Levels that decide together are decided in one place: in this process (compare) or in the store. */
function checkOneDecider(file: ReadFile, top: Place): void {
  const parts: readonly (readonly [Enforced, Place])[] = [
    [file.mode === undefined ? { mode: 'enforce' } : file, top],
    ...(file.global === undefined ? [] : [[file.global, top.below('global')] as const]),
    ...[...(file.policies ?? [])].map(
      ([name, policy]) => [policy, top.below('policies').below(name)] as const,
    ),
    ...[...(file.rules ?? [])].flatMap((rule, index) =>
      rule === undefined ? [] : [[rule, top.below('rules').below(index)] as const],
    ),
  ]
  let first: Mode | undefined
  for (const [{ mode, enforce }, place] of parts) {
    const said = mode ?? (enforce === undefined ? undefined : 'enforce')
    if (said === undefined || said === 'shadow') continue
    first ??= said
    if (said === first) continue
    const expected = `${first} or shadow, since levels: ${file.levels} decides all levels in one place`
    place.below(mode === undefined ? 'enforce' : 'mode').reject({ expected, got: said })
  }
}

/** The most that can ever be used at once, computed once for all rules. */
interface MostByName {
  readonly policies: ReadonlyMap<string, number>
  readonly tiers: ReadonlyMap<string, number>
  /** That of the file's default if it is a policy, else 0. */
  readonly byDefault: number
  /** The highest of all tiers and the default. */
  readonly any: number
}

function mostByName(file: ReadFile): MostByName {
  const options = file.tiers ?? new Map<string, TierOptions>(Object.entries(defaultTiers))
  const policies = new Map([...(file.policies ?? [])].map(([name, policy]) => [name, capacityOf(policy)]))
  const tiers = new Map(
    [...options].map(([name, tier]) => [name, leastOf(tierLimits(tier).map(({ limit }) => limit))]),
  )
  const { policy } = file.default ?? {}
  const byDefault = policy === undefined ? 0 : (policies.get(policy) ?? Number.POSITIVE_INFINITY)
  return { policies, tiers, byDefault, any: mostOf([...tiers.values(), byDefault]) }
}

/** Returns the most that a rule's requests can use, and the words for what bounds it. */
function mostFor({ policy, tier, match }: ReadRule, found: MostByName): { most: number; words: string } {
  const unlimited = Number.POSITIVE_INFINITY
  if (policy !== undefined)
    return { most: found.policies.get(policy) ?? unlimited, words: `policy ${policy}` }
  if (tier !== undefined) return { most: found.tiers.get(tier) ?? unlimited, words: `tier ${tier}` }
  const words = 'any tier it matches'
  if (match?.tier === undefined) return { most: found.any, words }
  const named = sound(match.tier).map(name => found.tiers.get(name) ?? unlimited)
  return { most: mostOf([...named, found.byDefault]), words }
}

function mostOf(numbers: readonly number[]): number {
  return numbers.reduce((most, number) => Math.max(most, number), Number.NEGATIVE_INFINITY)
}

/** Infinity for a tier without limits. */
function leastOf(numbers: readonly number[]): number {
  return numbers.reduce((least, number) => Math.min(least, number), Number.POSITIVE_INFINITY)
}

/** Returns the units that can be used at once; more is never admitted. A ban is meant to admit nothing. */
function capacityOf(policy: ReadPolicy | undefined): number {
  return leastOf(sound(policy?.limits).map(limit => limit.limit))
}
