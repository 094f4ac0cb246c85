import type { Ask, SubjectInput } from 'headgate'
import { describeValue, nearestName } from 'headgate/config'
import { RequestError } from './request-error.js'

/** The names that may be asked for. */
interface Names {
  readonly policies: ReadonlySet<string>
  readonly tiers: ReadonlySet<string>
}

/** One question to the limiter. */
export interface AskedCheck {
  readonly subject: SubjectInput
  readonly ask: Ask<string, string>
}

const FIELDS = ['subject', 'policy', 'tier', 'scope', 'cost']
const MAX_COST = 2 ** 32 - 1
const MAX_CHECKS = 1_000

/**
 * The checks of a request's body: the body itself, or each of its `checks`. All are looked at before any is asked,
 * so that a mistake in the last charges nothing to the first. Throws a `RequestError` that names the field.
 */
export function parseChecks(body: unknown, names: Names): { checks: AskedCheck[]; isList: boolean } {
  if (!isRecord(body)) throw bad('body', 'a JSON object', body)
  if (!Object.hasOwn(body, 'checks')) return { checks: [parseCheck(body, '', names)], isList: false }
  refuseUnknown(body, ['checks'], '')
  const { checks } = body
  if (!Array.isArray(checks) || checks.length === 0 || checks.length > MAX_CHECKS) {
    throw bad('checks', `a list of 1 to ${MAX_CHECKS} checks`, checks)
  }
  const parsed = checks.map((check: unknown, index) => {
    if (!isRecord(check)) throw bad(`checks[${index}]`, 'a JSON object', check)
    return parseCheck(check, `checks[${index}].`, names)
  })
  return { checks: parsed, isList: true }
}

function parseCheck(check: Record<string, unknown>, prefix: string, names: Names): AskedCheck {
  refuseUnknown(check, FIELDS, prefix)
  const { scope, cost } = check
  if (scope !== undefined && (typeof scope !== 'string' || scope === '')) {
    throw bad(`${prefix}scope`, 'a non-empty string', scope)
  }
  if (cost !== undefined && !(Number.isInteger(cost) && Number(cost) >= 0 && Number(cost) <= MAX_COST)) {
    throw bad(`${prefix}cost`, `a whole number from 0 to ${MAX_COST}`, cost)
  }
  return {
    subject: parseSubject(check.subject, `${prefix}subject`),
    ask: {
      ...parseRule(check, prefix, names),
      ...(scope === undefined ? {} : { scope }),
      ...(cost === undefined ? {} : { cost: Number(cost) }),
    },
  }
}

/** Never shows what came: the id may be a secret. */
function parseSubject(value: unknown, field: string): SubjectInput {
  const expectation = 'expected "type:id" or { "type", "id" }, both non-empty and no ":" in the type'
  const text = isRecord(value) ? `${textOf(value.type)}:${textOf(value.id)}` : textOf(value)
  const colon = text.indexOf(':')
  const typeHasColon = isRecord(value) && textOf(value.type).includes(':')
  if (colon <= 0 || colon === text.length - 1 || typeHasColon) throw new RequestError(400, field, expectation)
  return text as SubjectInput
}

function parseRule(
  check: Record<string, unknown>,
  prefix: string,
  names: Names,
): { policy: string } | { tier: string } {
  const { policy, tier } = check
  if ((policy === undefined) === (tier === undefined)) {
    const got = policy === undefined ? 'neither' : 'both'
    throw new RequestError(400, `${prefix}policy`, `expected either a policy or a tier; got ${got}`)
  }
  if (tier === undefined) return { policy: parseName(policy, `${prefix}policy`, names.policies) }
  return { tier: parseName(tier, `${prefix}tier`, names.tiers) }
}

function parseName(name: unknown, field: string, known: ReadonlySet<string>): string {
  if (typeof name === 'string' && known.has(name)) return name
  throw bad(field, known.size === 0 ? 'none: there are none' : `one of ${[...known].join(', ')}`, name, known)
}

function refuseUnknown(value: Record<string, unknown>, known: readonly string[], prefix: string): void {
  const unknown = Object.keys(value).find(key => !known.includes(key))
  if (unknown === undefined) return
  const field = unknown.length > 40 ? 'a field' : unknown
  throw bad(`${prefix}${field}`, `one of ${known.join(', ')}`, unknown, known)
}

function bad(field: string, expected: string, got: unknown, known: Iterable<string> = []): RequestError {
  const nearest = nearestName(got, known)
  const hint = nearest === null ? '' : `; did you mean "${nearest}"?`
  return new RequestError(400, field, `expected ${expected}; got ${describeValue(got)}${hint}`)
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
