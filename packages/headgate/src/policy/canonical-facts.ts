/** Normalises the facts of a request for the rules: subjects named, the path read in every way servers read it. */

import { parseCost, parseTimes } from '../check/check-options.js'
import { invalidOption, show, unexpected } from '../errors/headgate-error.js'
import type { PerAddress } from '../subject/identify.js'
import type { SubjectInput, SubjectNamer } from '../subject/subject.js'
import { methodsOf } from './claimed-methods.js'
import { pathReadings } from './path-readings.js'
import type { CanonicalFacts, Minted, RequestFacts } from './request-facts.js'

export interface CanonicalFactsOptions {
  readonly nameSubject: SubjectNamer
  /** The tiers of the policy file. */
  readonly tiers: Pick<ReadonlySet<string>, 'has'>
  /** Called for a tier that the file does not define. */
  warn(message: string, about: string): void
}

export function canonicalFacts(facts: RequestFacts, options: CanonicalFactsOptions): CanonicalFacts {
  rejectNonText(facts)
  const given = Array.isArray(facts.subject)
    ? (facts.subject as SubjectInput[])
    : [facts.subject as SubjectInput]
  if (given.length === 0) {
    throw unexpected('ERR_HEADGATE_INVALID_SUBJECT', 'subject', 'at least one', given)
  }
  return {
    subjects: given.map(options.nameSubject),
    methods: methodsOf(facts),
    path: facts.path === undefined ? null : (pathReadings(facts.path) ?? 'too-many'),
    tier: knownTier(facts.tier, options),
    scope: facts.scope ?? null,
    cost: facts.cost === undefined ? null : parseCost(facts.cost),
    minted: facts.perAddress === undefined ? null : nameMinted(facts.perAddress, options.nameSubject),
  }
}

function nameMinted({ address, minted }: PerAddress, nameSubject: SubjectNamer): Minted {
  const times = minted.map(one => [nameSubject(one.subject), parseTimes(one.times)] as const)
  return { address: nameSubject(address), times: new Map(times) }
}

/** A session may name a tier that the file no longer has; its caller is limited like one without a tier. */
function knownTier(tier: string | undefined, { tiers, warn }: CanonicalFactsOptions): string | null {
  if (tier === undefined) return null
  if (tiers.has(tier)) return tier
  const named = show(tier)
  warn(
    `tier: a request named ${named}, which the policy file does not define; its caller is treated as one without`,
    'tier',
  )
  return null
}

/** Facts may bypass the types: an invalid path must not pass for a request without one, which meets no rule. */
function rejectNonText(facts: RequestFacts): void {
  if (typeof facts !== 'object' || facts === null) {
    throw invalidOption('facts', 'an object with a subject', facts)
  }
  const { method, path, claimedMethods } = facts
  if (method !== undefined && typeof method !== 'string') throw notText('method', method)
  if (
    claimedMethods !== undefined &&
    (!Array.isArray(claimedMethods) || claimedMethods.some(claimed => typeof claimed !== 'string'))
  ) {
    throw invalidOption('claimedMethods', 'a list of strings, or nothing', claimedMethods)
  }
  if (path !== undefined && typeof path !== 'string') throw notText('path', path)
}

function notText(field: string, got: unknown): Error {
  return invalidOption(field, 'a string, or nothing', got)
}
