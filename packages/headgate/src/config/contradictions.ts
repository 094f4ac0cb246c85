/**
 * Settings that are sound one by one and cannot all be meant: what contradicts another, and what could never have an
 * effect. A file that says more than it does is worse than one that is refused.
 */

import type { Mode } from '../policy/config.js'
import { defaultTiers, type TierOptions, tierLimits } from '../policy/tiers.js'
import { parseCostKey } from './file/path-pattern.js'
import type { ReadPolicy } from './file/policy.js'
import type { ReadFile } from './file/policy-file.js'
import type { ReadRule } from './file/rule.js'
import { covers, ruleName } from './rule-match.js'
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
  if ((file.levels ?? 'most-specific') !== 'most-specific') checkOneDecider(file, top)
}

interface Enforced {
  readonly mode?: Mode
  readonly enforce?: number
  readonly onStoreFailure?: unknown
}

/** Where no mode is said beside it, a percentage says one: `enforce`. */
function checkEnforcement({ mode, enforce, onStoreFailure }: Enforced, place: Place): void {
  if (enforce !== undefined && mode !== undefined && mode !== 'enforce') {
    place.below('enforce').refuse({ expected: 'mode: enforce beside it, or no mode', got: `mode: ${mode}` })
  }
  if (mode === 'compare' && onStoreFailure !== undefined) {
    const expected = 'another mode beside it, since compare never waits for the store'
    place.below('onStoreFailure').refuse({ expected, got: 'mode: compare' })
  }
}

function checkGlobal(file: ReadFile, place: Place): void {
  if (file.global !== undefined) checkEnforcement(file.global, place)
  if ((file.levels ?? 'most-specific') !== 'most-specific') return
  const expected =
    'levels: all or first-available beside it, since most-specific always finds the caller first'
  const got = file.levels === undefined ? 'no levels' : 'levels: most-specific'
  place.refuse({ expected, got }, 'key')
}

function checkRules(file: ReadFile, place: Place): void {
  const above: { readonly rule: ReadRule; readonly name: string }[] = []
  for (const [index, rule] of (file.rules ?? []).entries()) {
    if (rule?.match === undefined) continue
    const here = place.below(index)
    const name = ruleName(rule)
    const cover = above.find(other => covers(other.rule.match ?? {}, rule.match ?? {}))
    if (cover !== undefined) {
      const expected = 'a rule that can match'
      here.refuse({ expected, got: `one that "${cover.name}" above it leaves nothing for` })
    } else if (above.some(other => other.name === name)) {
      here.below('name').refuse({ expected: 'a name that no rule above has', got: `"${name}" again` })
    }
    above.push({ rule, name })
    checkRule(file, rule, here)
  }
}

function checkRule(file: ReadFile, rule: ReadRule, place: Place): void {
  checkEnforcement(rule, place)
  if (rule.per === 'everyone' && rule.policy === undefined) {
    const got = rule.tier === undefined ? 'none' : 'a tier, which each caller has alone'
    place.below('per').refuse({ expected: 'a policy beside it that all callers share', got })
  }
  const { most, words } = mostFor(file, rule)
  if (rule.cost !== undefined && most > 0 && rule.cost > most) {
    const expected = `at most ${most}, which is all that ${words} ever has`
    place.below('cost').refuse({ expected, got: String(rule.cost) })
  }
}

/** The first key that matches is taken, so a wider one above leaves nothing. */
function checkCosts(file: ReadFile, place: Place): void {
  const above: { readonly key: string; readonly match: Parameters<typeof covers>[0] }[] = []
  for (const key of file.costs?.keys() ?? []) {
    const { method, path } = parseCostKey(key)
    const match = { path, ...(method !== null && { method: [method] }) }
    const cover = above.find(other => covers(other.match, match))
    if (cover !== undefined) {
      const got = `one that "${cover.key}" above it leaves nothing for`
      place.below(key).refuse({ expected: 'a route that can match', got }, 'key')
    }
    above.push({ key, match })
  }
}

/** Levels that decide together are asked in one place: in this process, as compare has it, or in the store. */
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
    place.below(mode === undefined ? 'enforce' : 'mode').refuse({ expected, got: said })
  }
}

/** The most that can ever be used at once of what a rule charges, and what that is. */
function mostFor(file: ReadFile, { policy, tier, match }: ReadRule): { most: number; words: string } {
  if (policy !== undefined) return { most: capacityOf(file.policies?.get(policy)), words: `policy ${policy}` }
  const tiers = file.tiers ?? new Map<string, TierOptions>(Object.entries(defaultTiers))
  const most = (name: string) => Math.min(...tierLimits(tiers.get(name) ?? {}).map(({ limit }) => limit))
  if (tier !== undefined) return { most: most(tier), words: `tier ${tier}` }
  const named = match?.tier === undefined ? [...tiers.keys()] : sound(match.tier)
  const byDefault =
    file.default?.policy === undefined ? [] : [capacityOf(file.policies?.get(file.default.policy))]
  return { most: Math.max(...named.map(most), ...byDefault), words: 'any tier it matches' }
}

/** What can be used at once; more is never admitted. A ban is meant to admit nothing. */
function capacityOf(policy: ReadPolicy | undefined): number {
  return Math.min(...sound(policy?.limits).map(limit => limit.limit))
}
