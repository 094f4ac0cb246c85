/**
 * Converts the limits of envoyproxy/ratelimit to parts of a policy file. Envoy's routes make the descriptors, and
 * these files do not describe them, so only keys with an agreed meaning are converted and everything else is listed
 * for the reader.
 */
import type { Limit } from 'headgate'
import type { DescriptorConfig, DescriptorLimit, DescriptorNode } from '../config/descriptor-tree.js'

export interface ConvertedPolicy {
  readonly name: string
  /** The descriptor it comes from, in words. */
  readonly from: string
  readonly limit: Limit
  readonly isShadow: boolean
}

export interface ConvertedRule {
  /** Null: an exemption. */
  readonly policy: string | null
  readonly match: Match
  /** Whether all callers share the budget, as they do if no entry identifies the caller. */
  readonly isShared: boolean
}

export interface Match {
  readonly method?: string
  readonly path?: string
  readonly scope?: string
  readonly subject?: string
}

export interface ConvertedLimits {
  readonly policies: readonly ConvertedPolicy[]
  readonly rules: readonly ConvertedRule[]
  /** Policies by `type:id`; null for an exemption. */
  readonly subjects: ReadonlyMap<string, string | null>
  /** Descriptors that became no rule, each with the reason. */
  readonly left: readonly { readonly from: string; readonly because: string }[]
}

interface Entry {
  readonly key: string
  /** Null: any value, with a budget for each. */
  readonly value: string | null
}

interface Found {
  readonly domain: string
  readonly entries: readonly Entry[]
  readonly limit: DescriptorLimit
}

/** The condition that an entry stands for; a text says why there is none. */
type Meaning = { readonly match: Match } | { readonly subject: string } | string

const SUBJECTS = new Map([
  ...['remote_address', 'masked_remote_address', 'client_ip', 'ip'].map(key => [key, 'ip'] as const),
  ...['user', 'user_id', 'userid', 'sub'].map(key => [key, 'user'] as const),
  ...['api_key', 'apikey', 'x-api-key'].map(key => [key, 'apikey'] as const),
])
const METHOD = /^[A-Z]{1,16}$/
const SCOPE = /^[\w./-]{1,64}$/
/** Without `*`, except for one at the end that stands for the rest. */
const PATH = /^\/[^*?#\s]*(?:(?<=\/)\*)?$/
const MAX_NAME = 32
/** The policy and the tier of whom nothing limits. */
export const EXEMPT = 'unlimited'

export function convertDescriptors(config: DescriptorConfig): ConvertedLimits {
  const policies: ConvertedPolicy[] = []
  const rules: ConvertedRule[] = []
  const subjects = new Map<string, string | null>()
  const left: { from: string; because: string }[] = []
  const names = new Set<string>([EXEMPT])
  for (const found of [...config].flatMap(([domain, root]) => limitsBelow(domain, root, []))) {
    const from = wordsOf(found)
    const { limit, mode } = found.limit
    if (limit === null) {
      const objection = place(found, null, { rules, subjects })
      if (objection !== null) left.push({ from, because: objection })
      continue
    }
    const name = freeName(found.limit.name || nameOf(found.entries), names)
    policies.push({ name, from, limit, isShadow: mode === 'shadow' })
    const objection = place(found, name, { rules, subjects })
    if (objection !== null) left.push({ from, because: objection })
  }
  return {
    policies,
    rules: rules.toSorted((one, other) => conditions(other) - conditions(one)),
    subjects,
    left,
  }
}

/** Adds the rule or subject that charges a policy, or else returns why there is none. */
function place(
  { entries, limit }: Found,
  policy: string | null,
  { rules, subjects }: { rules: ConvertedRule[]; subjects: Map<string, string | null> },
): string | null {
  if (limit.mode === 'quota') return 'quota_mode has no counterpart in a policy file'
  const meanings = entries.map(meaningOf)
  const objection = meanings.find(meaning => typeof meaning === 'string')
  if (objection !== undefined) return objection as string
  let match: Match = {}
  for (const meaning of meanings as readonly Exclude<Meaning, string>[]) {
    if ('subject' in meaning) {
      if (entries.length > 1) return 'one caller by name on one route has no counterpart in a policy file'
      subjects.set(meaning.subject, policy)
      return null
    }
    const twice = Object.keys(meaning.match).find(key => key in match)
    if (twice !== undefined) return `two entries say the ${twice}`
    match = { ...match, ...meaning.match }
  }
  rules.push({ policy, match, isShared: match.subject === undefined })
  return null
}

function meaningOf({ key, value }: Entry): Meaning {
  const type = SUBJECTS.get(key.toLowerCase())
  if (type !== undefined) {
    if (value === null) return { match: { subject: type } }
    return value.includes('*') ? `${key} with * in its value` : { subject: `${type}:${value}` }
  }
  const text = value ?? ''
  switch (key.toLowerCase()) {
    case 'path':
    case ':path':
      return PATH.test(text)
        ? { match: { path: text } }
        : `${key} is converted with one path, or one that ends in /*`
    case 'method':
    case ':method':
      return METHOD.test(text) ? { match: { method: text } } : `${key} is converted with one method`
    case 'generic_key':
      return SCOPE.test(text) ? { match: { scope: text } } : `${key} is converted with one value`
    default:
      return `only Envoy's routes know what ${JSON.stringify(key)} stands for`
  }
}

function limitsBelow(domain: string, node: DescriptorNode, above: readonly Entry[]): Found[] {
  const own = node.limit === null ? [] : [{ domain, entries: above, limit: node.limit }]
  const below = [...node.below].flatMap(([key, { byValue, wildcards, anyValue }]) => [
    ...[...byValue].flatMap(([value, next]) => limitsBelow(domain, next, [...above, { key, value }])),
    ...wildcards.flatMap(({ pattern, node: next }) =>
      limitsBelow(domain, next, [...above, { key, value: pattern }]),
    ),
    ...(anyValue === null ? [] : limitsBelow(domain, anyValue, [...above, { key, value: null }])),
  ])
  return [...own, ...below]
}

function wordsOf({ domain, entries }: Found): string {
  return `${domain}: ${entries.map(({ key, value }) => (value === null ? key : `${key}=${value}`)).join(', ')}`
}

function nameOf(entries: readonly Entry[]): string {
  return entries.map(({ key, value }) => `${value ?? key}`).join('-')
}

/** Returns a valid name that is not taken. */
function freeName(wanted: string, taken: Set<string>): string {
  const slug = wanted.replace(/[^A-Za-z0-9_]+/g, '-').replace(/^-|-$/g, '') || 'limit'
  const base = slug === 'tier' ? 'tier-limit' : slug
  let name = base.slice(0, MAX_NAME)
  for (let next = 2; taken.has(name); next++) name = `${base.slice(0, MAX_NAME - 4)}-${next}`
  taken.add(name)
  return name
}

/**
 * Counts conditions: the first matching rule wins, so those with more conditions come first, and longer paths
 * before shorter ones.
 */
function conditions({ match }: ConvertedRule): number {
  return Object.keys(match).length * 10_000 + (match.path?.replace(/\*$/, '').length ?? 0)
}
