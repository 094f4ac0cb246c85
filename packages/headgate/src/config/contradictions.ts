/**
 * Settings that are sound one by one and cannot all be meant: what contradicts another, and what could never have an
 * effect. A file that says more than it does is worse than one that is refused.
 */

import type { Mode } from '../policy/config.js'
import { canonicalPath } from '../policy/path-readings.js'
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
  const capacity = capacityOf(rule.policy === undefined ? undefined : file.policies?.get(rule.policy))
  if (rule.cost !== undefined && capacity > 0 && rule.cost > capacity) {
    const expected = `at most ${capacity}, which is all that policy ${rule.policy} ever has`
    place.below('cost').refuse({ expected, got: String(rule.cost) })
  }
}

/** Two keys that are one route in every spelling. */
function checkCosts(file: ReadFile, place: Place): void {
  const seen = new Set<string>()
  for (const key of file.costs?.keys() ?? []) {
    const { method, path } = parseCostKey(key)
    const route = `${method ?? ''} ${canonicalPath(path).replace(/\/:[^/]+/g, '/:')}`
    if (seen.has(route))
      place.below(key).refuse({ expected: 'each route once', got: 'one that is above' }, 'key')
    seen.add(route)
  }
}

/** What can be used at once; more is never admitted. A ban is meant to admit nothing. */
function capacityOf(policy: ReadPolicy | undefined): number {
  return Math.min(...sound(policy?.limits).map(limit => limit.limit))
}
