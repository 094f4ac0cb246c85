/** What is valid part by part but cannot be meant, or does nothing: one table of checks. */

import type { Limit } from '../algorithms/algorithm.js'
import { doubtOfWindow, formatDurationUs } from '../algorithms/durations.js'
import { type Lists, listsOf } from '../policy/candidates.js'
import { mostCostOf } from '../policy/checks-of.js'
import type { MatchConfig, Mode } from '../policy/config.js'
import { PathIndex } from '../policy/path-index.js'
import { compilePattern, type PathPattern } from '../policy/path-pattern.js'
import { DEFAULT_TIERS, type TierOptions } from '../policy/tier-numbers.js'
import { tierLimits } from '../policy/tiers.js'
import type { TrustedProxies } from '../subject/client-address.js'
import { overlaps, parseNetwork } from '../subject/network.js'
import { typesOf } from '../subject/source-config.js'
import { foldType } from '../subject/subject.js'
import type { Complaint, ConfigWarningCode, Path, Warn } from './config-error.js'
import { parseCostKey } from './file/path-pattern.js'
import type { ReadFile } from './file/policy-file.js'
import type { ReadRule } from './file/rule.js'
import { policiesCharged } from './ready-policies.js'
import { isMapLike, peekMap } from './shape/maps.js'
import type { Names, Place } from './shape/shape.js'
import { ANONYMOUS, ruleName, toMatch } from './to-config.js'

/** A file as it was read, and as it was written. */
interface Checked {
  readonly file: ReadFile
  readonly written: unknown
  readonly names: Names
}

type Mistakes = Iterable<readonly [path: Path, complaint: Complaint, at?: 'key' | 'value']>
type Doubts = Iterable<readonly [path: Path, message: string]>

/** The file is rejected: one that seems to do more than it does is worse than none. */
const MISTAKES: readonly ((checked: Checked) => Mistakes)[] = [
  noDefault,
  percentageBesideAnotherMode,
  storeFailureBesideCompare,
  levelsDecidedInTwoPlaces,
  globalThatNoLevelUses,
  policyBesideATier,
  rulesHiddenOrNamedTwice,
  sharedBudgetOfATier,
  costAboveTheCapacity,
  reserveAboveTheCapacity,
  costsHidden,
  routesTwice,
  subjectsThatNoSourceFinds,
]

/** The file is used, with a warning: an app may charge a policy by name, or find callers itself. */
const DOUBTS: Readonly<Record<ConfigWarningCode, (checked: Checked) => Doubts>> = {
  WARN_HEADGATE_LIMIT_NEVER_BINDS: limitsThatNeverBind,
  WARN_HEADGATE_POLICY_NEVER_CHARGED: policiesNeverCharged,
  WARN_HEADGATE_SUBJECT_NEVER_FOUND: subjectsThatNoServerFinds,
  WARN_HEADGATE_INTERNAL_OF_PROXY: internalSourcesOfProxies,
  WARN_HEADGATE_WINDOW_IN_SECONDS: windowsInMilliseconds,
}

/** Reports every mistake in a file whose valid parts are given. */
export function findMistakes(checked: Checked, top: Place): void {
  for (const check of MISTAKES) {
    for (const [path, complaint, at] of check(checked)) top.below(...path).reject(complaint, at)
  }
}

/** Warns about every doubtful part of a valid file. */
export function findDoubts(checked: Checked, warn: Warn): void {
  for (const [code, check] of Object.entries(DOUBTS)) {
    for (const [path, message] of check(checked)) warn(path, code as ConfigWarningCode, message)
  }
}

function* noDefault({ written, names }: Checked): Mistakes {
  if (names.tiers?.has(ANONYMOUS) !== false || peekMap(written)?.has('default')) return
  yield [['default'], { expected: `a tier or a policy, since there is no tier ${ANONYMOUS}`, got: 'nothing' }]
}

/** The parts of a file that say how strictly they are enforced. */
function* enforcedParts(file: ReadFile) {
  yield [[], file] as const
  if (file.global !== undefined) yield [['global'], { ...file.global, onStoreFailure: undefined }] as const
  for (const [name, policy] of file.policies ?? []) yield [['policies', name], policy] as const
  for (const [index, rule] of rulesOf(file)) yield [['rules', index], rule] as const
}

/** The rules whose conditions are valid. */
function* rulesOf({ rules = [] }: ReadFile): Iterable<readonly [index: number, rule: ReadRule]> {
  for (const [index, { match, ...rule }] of rules.entries()) {
    if (match !== undefined) yield [index, { ...rule, match }]
  }
}

function* policyBesideATier({ file }: Checked): Mistakes {
  for (const [index, { policy, tier }] of rulesOf(file)) {
    if (policy === undefined || tier === undefined) continue
    yield [['rules', index], { expected: 'either a tier or a policy', got: 'both' }]
  }
}

/** A percentage without a mode implies `enforce`. */
function* percentageBesideAnotherMode({ file }: Checked): Mistakes {
  for (const [path, { mode, enforce }] of enforcedParts(file)) {
    if (enforce === undefined || mode === undefined || mode === 'enforce') continue
    yield [[...path, 'enforce'], { expected: 'mode: enforce beside it, or no mode', got: `mode: ${mode}` }]
  }
}

function* storeFailureBesideCompare({ file }: Checked): Mistakes {
  const expected = 'another mode beside it, since compare never waits for the store'
  for (const [path, { mode, onStoreFailure }] of enforcedParts(file)) {
    if (mode !== 'compare' || onStoreFailure === undefined) continue
    yield [[...path, 'onStoreFailure'], { expected, got: 'mode: compare' }]
  }
}

/** Levels that decide together are decided in one place: in this process (compare) or in the store. */
function* levelsDecidedInTwoPlaces({ file }: Checked): Mistakes {
  if ((file.levels ?? 'most-specific') === 'most-specific') return
  let first: Mode | undefined
  for (const [path, { mode = path.length === 0 ? 'enforce' : undefined, enforce }] of enforcedParts(file)) {
    const said = mode ?? (enforce === undefined ? undefined : 'enforce')
    if (said === undefined || said === 'shadow') continue
    first ??= said
    if (said === first) continue
    const expected = `${first} or shadow, since levels: ${file.levels} decides all levels in one place`
    yield [[...path, mode === undefined ? 'enforce' : 'mode'], { expected, got: said }]
  }
}

function* globalThatNoLevelUses({ file: { global, levels } }: Checked): Mistakes {
  if (global === undefined || (levels ?? 'most-specific') !== 'most-specific') return
  const expected =
    'levels: all or first-available beside it, since most-specific always finds the caller first'
  const got = levels === undefined ? 'no levels' : 'levels: most-specific'
  yield [['global'], { expected, got }, 'key']
}

/** The first matching rule of a level wins. Route rules and caller rules are on different levels. */
function* rulesHiddenOrNamedTwice({ file }: Checked): Mistakes {
  const above = { route: new PathIndex<string>(false), caller: new PathIndex<string>(false) }
  const names = new Set<string>()
  for (const [index, rule] of rulesOf(file)) {
    const name = ruleName(rule)
    const level = rule.match.method === undefined && rule.match.path === undefined ? 'caller' : 'route'
    const { pattern, lists } = compileMatch(toMatch(rule.match))
    const cover = above[level].cover(pattern, lists)
    if (cover !== null) {
      const got = `one that "${cover.value}" above it leaves nothing for`
      yield [['rules', index], { expected: 'a rule that can match', got }]
    } else if (names.has(name)) {
      yield [['rules', index, 'name'], { expected: 'a name that no rule above has', got: `"${name}" again` }]
    }
    above[level].add(pattern, lists, name)
    names.add(name)
  }
}

/** Compiles conditions for comparison with others on the same level. */
function compileMatch(match: MatchConfig): { readonly pattern: PathPattern | null; readonly lists: Lists } {
  return { pattern: match.path === null ? null : compilePattern(match.path), lists: listsOf(match) }
}

function* sharedBudgetOfATier({ file }: Checked): Mistakes {
  for (const [index, { per, policy, tier }] of rulesOf(file)) {
    if (per !== 'everyone' || policy !== undefined) continue
    const got = tier === undefined ? 'none' : 'a tier, which each caller has alone'
    yield [['rules', index, 'per'], { expected: 'a policy beside it that all callers share', got }]
  }
}

/** More than the capacity is never admitted. A ban is meant to admit nothing. */
function* costAboveTheCapacity({ file, names }: Checked): Mistakes {
  const policies = new Map(
    [...(file.policies ?? [])].map(([name, policy]) => [name, mostCostOf(policy.limits)]),
  )
  const read = file.tiers ?? Object.entries<TierOptions>(names.tiers === null ? {} : DEFAULT_TIERS)
  const tiers = new Map([...read].map(([name, tier]) => [name, mostCostOf(tierLimits(tier))]))
  // Those with mistakes are not known, and may have been meant to have any number.
  const unlimited = Number.POSITIVE_INFINITY
  const ofPolicy = (name: string) => policies.get(name) ?? unlimited
  const ofTier = (name: string) => tiers.get(name) ?? unlimited
  const byDefault = file.default?.policy === undefined ? 0 : ofPolicy(file.default.policy)
  // Computed once for all rules.
  const ofAnyTier = names.tiers === null ? unlimited : mostOf([...[...names.tiers].map(ofTier), byDefault])
  for (const [index, { cost = 0, policy, tier, match }] of rulesOf(file)) {
    const [most, words] =
      policy !== undefined
        ? [ofPolicy(policy), `policy ${policy}`]
        : tier !== undefined
          ? [ofTier(tier), `tier ${tier}`]
          : [
              match.tier === undefined ? ofAnyTier : mostOf([...match.tier.map(ofTier), byDefault]),
              'any tier it matches',
            ]
    if (most === 0 || cost <= most) continue
    const expected = `at most ${most}, which is all that ${words} ever has`
    yield [['rules', index, 'cost'], { expected, got: String(cost) }]
  }
}

function* reserveAboveTheCapacity({ file }: Checked): Mistakes {
  for (const [index, { tokens = [] }] of rulesOf(file)) {
    for (const { meter, policy, reserve } of tokens) {
      const most = mostCostOf(file.policies?.get(policy)?.limits ?? [])
      if (most === 0 || reserve <= most) continue
      const expected = `at most ${most}, which is all that policy ${policy} ever has`
      yield [['rules', index, 'tokens', meter, 'reserve'], { expected, got: String(reserve) }]
    }
  }
}

function mostOf(numbers: readonly number[]): number {
  return numbers.reduce((most, number) => Math.max(most, number), 0)
}

/** The first matching key wins, so a wider one above hides it. */
function* costsHidden({ file }: Checked): Mistakes {
  const above = new PathIndex<string>(false)
  for (const key of file.costs?.keys() ?? []) {
    const { method, path } = parseCostKey(key)
    const { pattern, lists } = compileMatch({
      ...toMatch({}),
      path,
      methods: method === null ? null : [method],
    })
    const cover = above.cover(pattern, lists)
    if (cover !== null) {
      const got = `one that "${cover.value}" above it leaves nothing for`
      yield [['costs', key], { expected: 'a route that can match', got }, 'key']
    }
    above.add(pattern, lists, key)
  }
}

/** The most specific route wins whatever the order, so two for the same requests cannot both be meant. */
function* routesTwice({ file }: Checked): Mistakes {
  const seen = new Set<string>()
  for (const [index, { match = { host: [] } }] of (file.routes ?? []).entries()) {
    const { host = [''], path = '' } = match
    for (const key of host.map(name => `${name}${path}`)) {
      if (seen.has(key)) {
        const expected = 'requests that no route above is for'
        yield [['routes', index, 'match'], { expected, got: 'the same again' }]
      }
      seen.add(key)
    }
  }
}

/** Callers and rules with a type that no source of `identify` finds would never match. */
function* subjectsThatNoSourceFinds({ file, written }: Checked): Mistakes {
  if (file.identify === undefined) return
  const types = new Set(file.identify.flatMap(typesOf).map(foldType))
  const expected = `a type that identify finds (${[...types].join(', ')})`
  for (const [path, named] of typesOtherThan(types, file)) {
    const [part, index, field] = path
    if (part === 'subjects') yield [path, { expected, got: `one of type ${named}` }, 'key']
    else if (isWrittenIn(written, Number(index), String(field))) yield [path, { expected, got: named }]
    // A ready policy brought it.
    else {
      const { policy = '' } = file.rules?.[Number(index)] ?? {}
      const own = field === 'per' ? 'per: caller' : field
      const expected = `${own} beside it, or a source of ${named} in identify, since ${policy} brings ${field} with ${named}`
      yield [['rules', Number(index), 'policy'], { expected, got: policy }]
    }
  }
}

/** Whether a rule was written with a field, valid or not. */
export function isWrittenIn(written: unknown, rule: number, field: string): boolean {
  const rules = peekMap(written)?.get('rules')
  return Array.isArray(rules) && peekMap(rules[rule])?.has(field) === true
}

function* subjectsThatNoServerFinds({ file }: Checked): Doubts {
  if (file.identify !== undefined) return
  const message =
    'a server finds apikey and ip alone where the file has no identify: only an app that says itself who is asking has such a subject'
  for (const [path] of typesOtherThan(new Set(['apikey', 'ip']), file)) yield [path, message]
}

/** Finds the callers and the rules that are for subjects of other types alone. */
function* typesOtherThan(
  types: ReadonlySet<string>,
  file: ReadFile,
): Iterable<readonly [path: Path, named: string]> {
  const isFound = (type: string): boolean => types.has(foldType(type))
  for (const subject of file.subjects?.keys() ?? []) {
    const type = subject.slice(0, subject.indexOf(':'))
    if (!isFound(type)) yield [['subjects', subject], type]
  }
  for (const [index, { match, also = [], per }] of rulesOf(file)) {
    const { subject = [] } = match
    // Charged together or not at all: with one that is never found, each pays alone.
    const missing = Array.isArray(per) ? per.find(type => !isFound(type)) : undefined
    if (missing !== undefined) yield [['rules', index, 'per'], missing]
    if (subject.length > 0 && !subject.some(isFound))
      yield [['rules', index, 'match', 'subject'], subject.join(', ')]
    for (const [number, { subject }] of also.entries()) {
      if (!isFound(subject)) yield [['rules', index, 'also', number, 'subject'], subject]
    }
  }
}

/** A limit, or the limits of one number of a tier, and its position in the file. */
interface Part {
  readonly path: Path
  readonly limits: readonly Limit[]
}

const TIER_NUMBERS = ['minute', 'hour', 'day', 'month'] as const

/** If two limits make each other redundant, the first one written is kept. */
function* limitsThatNeverBind({ file, written }: Checked): Doubts {
  for (const parts of partsBesideEachOther(file, written)) {
    for (const [index, part] of parts.entries()) {
      const stricter = parts.find(
        (other, at) =>
          other !== part && leavesNothing(other, part) && (at < index || !leavesNothing(part, other)),
      )
      const [limit] = stricter?.limits ?? []
      if (limit === undefined) continue
      const words = `${limit.limit} in ${formatDurationUs(limit.quota.windowUs)}`
      yield [part.path, `never takes effect: ${words} beside it leaves nothing for it to deny`]
    }
  }
}

function* partsBesideEachOther(file: ReadFile, written: unknown): Iterable<readonly Part[]> {
  const policies = peekMap(peekMap(written)?.get('policies'))
  for (const [name, policy] of file.policies ?? []) {
    const path = ['policies', name, ...(isMapLike(policies?.get(name)) ? ['limits'] : [])]
    yield policy.limits.map((limit, index) => ({ path: [...path, index], limits: [limit] }))
  }
  for (const [name, tier] of file.tiers ?? []) {
    yield TIER_NUMBERS.flatMap(field => {
      const number = tier[field]
      if (number === undefined) return []
      const burst = field === 'minute' && tier.burst !== undefined ? { burst: tier.burst } : {}
      return [{ path: ['tiers', name, field], limits: tierLimits({ [field]: number, ...burst }) }]
    })
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

function* policiesNeverCharged({ file }: Checked): Doubts {
  const charged = policiesCharged(file)
  for (const name of file.policies?.keys() ?? []) {
    if (charged.has(name)) continue
    yield [
      ['policies', name],
      'no rule, subject, default or global charges it: only a request that asks for it by name does',
    ]
  }
}

/**
 * A proxy that does not name its client would lend its own address to whoever it forwards for, and one in a network
 * that anybody may claim is no proof.
 */
function* internalSourcesOfProxies({ file: { identify = [], trustedProxies = [] } }: Checked): Doubts {
  for (const [index, source] of identify.entries()) {
    if (source.source !== 'internal' || source.from === 'everybody') continue
    const shared = source.from.find(network => isProxy(network, trustedProxies))
    if (shared === undefined) continue
    yield [
      ['identify', index, 'internal', 'from'],
      `${shared} is also in trustedProxies: a client behind a proxy that does not name it would be one of your services; list the addresses of the services alone`,
    ]
  }
}

function isProxy(network: string, trustedProxies: TrustedProxies): boolean {
  if (trustedProxies === 'everybody') return true
  if (!Array.isArray(trustedProxies)) return false
  const trusted = parseNetwork(network)
  return trustedProxies.some((proxy: string) => overlaps(trusted, parseNetwork(proxy)))
}

function* windowsInMilliseconds({ written }: Checked): Doubts {
  for (const [name, policy] of peekMap(peekMap(written)?.get('policies')) ?? []) {
    yield* windowsIn(policy, ['policies', name])
  }
}

/** A policy is a limit, a list of limits, or a map that contains such lists. */
function* windowsIn(value: unknown, path: Path): Doubts {
  if (Array.isArray(value)) {
    for (const [index, limit] of value.entries()) yield* windowsIn(limit, [...path, index])
    return
  }
  const fields = peekMap(value)
  if (fields === null) return
  const doubt = doubtOfWindow(fields.get('window'))
  if (doubt !== null) yield [[...path, 'window'], doubt]
  for (const key of ['limits', 'candidate']) yield* windowsIn(fields.get(key), [...path, key])
}
