/**
 * Reads the questions in a body: about a policy or tier by name, or about a request by the rules of the policy
 * file. A body with a `method`, a `path` or a list of subjects is about a request.
 */
import type { CheckOptions, RequestFacts, SubjectInput } from 'headgate'
import { ANONYMOUS, claimedMethods, isReference, namesNobody } from 'headgate/internal'
import {
  bad,
  booleanOf,
  type Fields,
  objectOf,
  rejectUnknown,
  subjectOf,
  textOf,
  unitsOf,
} from '../admin/body-fields.js'
import { RequestError } from '../admin/endpoint.js'

/** The names that may be asked for. */
export interface Names {
  readonly policies: ReadonlySet<string>
  readonly tiers: ReadonlySet<string>
  /** Returns the subject that a reference stands for; undefined for callers who may not ask by one. */
  readonly subjectOf?: ((reference: string) => string) | undefined
}

/** One question to the limiter. */
export type AskedCheck = (
  | { readonly facts: RequestFacts }
  | { readonly facts: null; readonly subject: SubjectInput; readonly ask: CheckOptions<string, string> }
) & {
  /** Whether a reference is wanted, by which the units can be refunded. */
  readonly refundable: boolean
}

const NAMED_FIELDS = ['subject', 'policy', 'tier', 'scope', 'cost', 'refundable']
const FACTS_FIELDS = ['subject', 'method', 'path', 'claimedMethods', 'tier', 'scope', 'cost', 'refundable']
const ALL_FIELDS = [...new Set([...NAMED_FIELDS, ...FACTS_FIELDS])]
const MAX_CHECKS = 1_000
const MAX_SUBJECTS = 16
const MAX_CLAIMED = 16

/**
 * Reads the checks of a request's body: the body itself, or each of its `checks`. All are validated before any is
 * asked, so that a mistake in the last charges nothing to the first. Throws a `RequestError` that names the field.
 */
export function parseChecks(value: unknown, names: Names): { checks: AskedCheck[]; isList: boolean } {
  const body = objectOf(value, 'body')
  if (!Object.hasOwn(body, 'checks')) return { checks: [parseCheck(body, '', names)], isList: false }
  rejectUnknown(body, ['checks'])
  const { checks } = body
  if (!Array.isArray(checks) || checks.length === 0 || checks.length > MAX_CHECKS) {
    throw bad('checks', `a list of 1 to ${MAX_CHECKS} checks`, checks)
  }
  const parsed = checks.map((check: unknown, index) =>
    parseCheck(objectOf(check, `checks[${index}]`), `checks[${index}].`, names),
  )
  return { checks: parsed, isList: true }
}

function parseCheck(given: Fields, prefix: string, names: Names): AskedCheck {
  rejectUnknown(given, ALL_FIELDS, prefix)
  const { subject } = given
  const isByReference = names.subjectOf !== undefined && typeof subject === 'string' && isReference(subject)
  const check = isByReference ? { ...given, subject: names.subjectOf(subject) } : given
  const refundable = booleanOf(check.refundable, `${prefix}refundable`)
  if (isAboutRequest(check)) return { facts: parseFacts(check, prefix, names), refundable }
  return { facts: null, ...parseNamed(check, prefix, names), refundable }
}

function isAboutRequest({ method, path, subject }: Fields): boolean {
  return method !== undefined || path !== undefined || Array.isArray(subject)
}

/** Reads a check that names a policy or a tier. */
export function parseNamed(
  check: Fields,
  prefix: string,
  names: Names,
): { subject: SubjectInput; ask: CheckOptions<string, string> } {
  if (check.claimedMethods !== undefined) {
    throw new RequestError(400, {
      field: `${prefix}claimedMethods`,
      expected: 'beside a method or a path only',
    })
  }
  const scope = textOf(check.scope, `${prefix}scope`)
  const cost = unitsOf(check.cost, `${prefix}cost`, 0)
  return {
    subject: subjectOf(check.subject, `${prefix}subject`),
    ask: {
      ...parseRule(check, prefix, names),
      ...(scope !== undefined && { scope }),
      ...(cost !== undefined && { cost }),
    },
  }
}

function parseFacts(check: Fields, prefix: string, { tiers }: Names): RequestFacts {
  if (check.policy !== undefined) {
    throw new RequestError(400, {
      field: `${prefix}policy`,
      expected: 'none beside a method, a path or a list of subjects',
    })
  }
  const method = textOf(check.method, `${prefix}method`)
  const path = textOf(check.path, `${prefix}path`)
  const scope = textOf(check.scope, `${prefix}scope`)
  const cost = unitsOf(check.cost, `${prefix}cost`, 0)
  const tier = check.tier === undefined ? undefined : parseName(check.tier, `${prefix}tier`, tiers)
  return {
    subject: parseSubjects(check.subject, `${prefix}subject`),
    claimedMethods: parseClaimed(check.claimedMethods, `${prefix}claimedMethods`, path ?? ''),
    ...(method !== undefined && { method }),
    ...(path !== undefined && { path }),
    ...(tier !== undefined && { tier }),
    ...(scope !== undefined && { scope }),
    ...(cost !== undefined && { cost }),
  }
}

/** A subject without an id, such as `user:`, names nobody: the next one does, or the request has nobody's budget. */
function parseSubjects(value: unknown, field: string): SubjectInput | readonly SubjectInput[] {
  if (!Array.isArray(value)) return lacksId(value) ? ANONYMOUS : subjectOf(value, field)
  if (value.length === 0 || value.length > MAX_SUBJECTS) {
    throw bad(field, `a subject, or a list of 1 to ${MAX_SUBJECTS}`, value)
  }
  const named = value.flatMap((one: unknown, index) =>
    lacksId(one) ? [] : [subjectOf(one, `${field}[${index}]`)],
  )
  return named.length === 0 ? ANONYMOUS : named
}

/** Whether a type is there, but no id. */
function lacksId(value: unknown): boolean {
  if (typeof value === 'string') return value.indexOf(':') > 0 && namesNobody(value) !== null
  const { type, id = null } = (value ?? {}) as { readonly type?: unknown; readonly id?: unknown }
  if (typeof type !== 'string' || type === '' || type.includes(':')) return false
  return id === null || (typeof id === 'string' && namesNobody({ type, id }) !== null)
}

/** Returns the methods claimed in headers, according to the caller, and in the path's query. */
function parseClaimed(value: unknown, field: string, path: string): readonly string[] {
  const inQuery = claimedMethods(() => null, path)
  if (value === undefined) return inQuery
  const isList = Array.isArray(value) && value.length <= MAX_CLAIMED
  if (!isList || value.some(one => typeof one !== 'string' || one === '')) {
    throw bad(field, `a list of at most ${MAX_CLAIMED} methods`, value)
  }
  return [...inQuery, ...(value as string[])]
}

function parseRule(check: Fields, prefix: string, names: Names): { policy: string } | { tier: string } {
  const { policy, tier } = check
  if ((policy === undefined) === (tier === undefined)) {
    const got = policy === undefined ? 'neither, and no method or path to go by the rules' : 'both'
    throw new RequestError(400, { field: `${prefix}policy`, expected: 'either a policy or a tier', got })
  }
  if (tier === undefined) return { policy: parseName(policy, `${prefix}policy`, names.policies) }
  return { tier: parseName(tier, `${prefix}tier`, names.tiers) }
}

function parseName(name: unknown, field: string, known: ReadonlySet<string>): string {
  if (typeof name === 'string' && known.has(name)) return name
  throw bad(field, known.size === 0 ? 'none: there are none' : `one of ${[...known].join(', ')}`, name, known)
}
