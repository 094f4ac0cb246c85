/** Turns a question of Envoy's into limits: the one each descriptor matches, and the alternatives to ask. */

import type { SubjectInput } from 'headgate'
import type { GivenLimit, GivenLimits } from 'headgate/internal'
import type { DescriptorConfig, DescriptorLimit } from './config/descriptor-tree.js'
import { defaultLimit } from './config/parse-rate-limit.js'
import type { Descriptor, Entry, RateLimitAsk } from './descriptor.js'
import { type MatchedLimit, matchDescriptor } from './match-descriptor.js'

/** The limit that one descriptor matches, or why it matches none. */
export interface ResolvedDescriptor {
  /** Null: nothing is configured for it. */
  readonly limit: DescriptorLimit | null
  /** Where to find its verdict; null if nothing is asked. */
  readonly place: { readonly part: 'enforced' | 'quota' | 'shadow'; readonly index: number } | null
}

export interface ResolvedAsk {
  readonly descriptors: readonly ResolvedDescriptor[]
  readonly given: GivenLimits
  /** The number of limits in the first alternative before those of quotas. */
  readonly enforced: number
  /** Units to be given back before anything is asked. */
  readonly refunds: readonly GivenLimit[]
}

/** The policy part of their names. */
const POLICY = 'envoy'
const MAX_HITS = 2 ** 32 - 1
/** Entries whose values are secrets: a descriptor with one is stored only as a keyed hash. */
const SECRET_KEY = /auth|api[-_]?key|token|secret|session|cookie|password|credential/i

/** With `isShadow`, every limit is only watched. */
export function resolveAsk(config: DescriptorConfig, ask: RateLimitAsk, isShadow = false): ResolvedAsk {
  const matched = withoutReplaced(ask.descriptors.map(one => match(config, ask.domain, one)))
  const parts = { enforced: new LimitList(), quota: new LimitList(), shadow: new LimitList() }
  const refunds: GivenLimit[] = []
  const descriptors = matched.map((found, index): ResolvedDescriptor => {
    if (found?.limit.limit == null) return { limit: found?.limit ?? null, place: null }
    const descriptor = ask.descriptors[index] as Descriptor
    const hits = descriptor.hitsAddend ?? Math.max(1, ask.hitsAddend)
    const given = givenLimit(ask.domain, found, hits)
    // After giving units back we peek, to say how many are left.
    if (descriptor.isNegativeHits && hits > 0) refunds.push(given)
    const { mode } = found.limit
    const part = isShadow ? 'shadow' : mode === 'enforce' ? 'enforced' : mode
    const asked = descriptor.isNegativeHits ? { ...given, cost: 0 } : given
    return { limit: found.limit, place: { part, index: parts[part].add(asked) } }
  })
  const enforced = parts.enforced.limits
  const quotas = parts.quota.limits
  return {
    descriptors,
    given: { alternatives: alternativesOf(enforced, quotas), shadow: parts.shadow.limits },
    enforced: enforced.length,
    refunds,
  }
}

/** All quotas if all have room, else the first that has. */
function alternativesOf(
  enforced: readonly GivenLimit[],
  quotas: readonly GivenLimit[],
): readonly (readonly GivenLimit[])[] {
  const all = [...enforced, ...quotas]
  return quotas.length < 2 ? [all] : [all, ...quotas.map(quota => [...enforced, quota])]
}

function match(config: DescriptorConfig, domain: string, descriptor: Descriptor): MatchedLimit | null {
  const root = config.get(domain)
  if (root === undefined) return null
  const { entries, limit } = descriptor
  if (limit === null) return matchDescriptor(root, entries)
  const own: DescriptorLimit = {
    limit: defaultLimit(limit.requestsPerUnit, limit.unit),
    ...limit,
    name: '',
    replaces: [],
    mode: 'enforce',
    metadata: null,
  }
  return { limit: own, entries }
}

function withoutReplaced(matched: readonly (MatchedLimit | null)[]): readonly (MatchedLimit | null)[] {
  const replaced = new Set(matched.flatMap(found => found?.limit.replaces ?? []))
  if (replaced.size === 0) return matched
  return matched.map(found => (found !== null && replaced.has(found.limit.name) ? null : found))
}

function givenLimit(domain: string, { limit, entries }: MatchedLimit, cost: number): GivenLimit {
  return {
    subject: subjectOf(entries),
    policy: POLICY,
    scope: domain,
    // Those without a limit were left out before.
    limit: limit.limit as GivenLimit['limit'],
    cost,
  }
}

/** Formats `descriptor:path=%2Flogin|remote_address=192.0.2.1`, encoding what could end a part early. */
function subjectOf(entries: readonly Entry[]): SubjectInput {
  const id = entries
    .map(({ key, value }) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`)
    .join('|')
  // A type that marks a secret, so that ids are stored as a keyed hash.
  const isSecret = entries.some(({ key }) => SECRET_KEY.test(key))
  return `${isSecret ? 'descriptor-secret' : 'descriptor'}:${id}`
}

/** The limits to ask, each state once: the same descriptor twice is one that costs both. */
class LimitList {
  readonly limits: GivenLimit[] = []
  private readonly places = new Map<string, number>()

  /** Returns the position of its verdict. */
  add(given: GivenLimit): number {
    const state = `${given.limit.id} ${given.subject as string}`
    const place = this.places.get(state)
    const known = place === undefined ? undefined : this.limits[place]
    if (place === undefined || known === undefined) {
      this.places.set(state, this.limits.length)
      return this.limits.push(given) - 1
    }
    const cost = Math.min(MAX_HITS, (known.cost ?? 1) + (given.cost ?? 1))
    const limit = given.limit.limit < known.limit.limit ? given.limit : known.limit
    this.limits[place] = { ...known, limit, cost }
    return place
  }
}
