import { MAX_UNITS } from '../../algorithms/algorithm.js'
import { HEADER_STYLES } from '../../policy/config.js'
import { PRIORITIES } from '../../policy/tiers.js'
import { describeValue } from '../describe-value.js'
import { listOf, oneOrMore } from '../shape/lists.js'
import { type RecordShape, record } from '../shape/maps.js'
import { choice, NAME, nameOf, text, wholeNumber } from '../shape/scalars.js'
import type { Place, Shape } from '../shape/shape.js'
import { enforcement, failure } from './enforcement.js'
import { method, pathPattern } from './path-pattern.js'
import { refundIf } from './refund-if.js'

export const headerStyle = choice(HEADER_STYLES)
export const priority = choice(PRIORITIES)
export const cost = wholeNumber(0, MAX_UNITS)

const scope = text('a text of 1 to 64 letters, digits, ., _, - or /', /^[\w./-]{1,64}$/)
/** Reads a subject type. The value may be a whole subject whose id is a secret, so it is not shown. */
export const subjectType: Shape<string> = {
  ...text('a subject type, such as ip, user or apikey', NAME),
  read(value, place) {
    if (typeof value === 'string' && NAME.test(value)) return value
    const got = typeof value === 'string' ? `a string of ${value.length} characters` : describeValue(value)
    return place.reject({ expected: subjectType.words, got })
  },
}

const matchFields = record({
  method: { shape: oneOrMore(method), text: 'The method, or a list of them.', leftOut: 'any' },
  path: {
    shape: pathPattern,
    text: 'The path: `:name` matches any one segment, a final `*` any rest. Alternative spellings of a path match too.',
    leftOut: 'any',
  },
  subject: {
    shape: oneOrMore(subjectType),
    text: 'The type of a subject of the request, in upper or lower case, or a list of them. The first such subject is charged.',
    leftOut: 'any',
  },
  tier: { shape: oneOrMore(nameOf('tiers')), text: "The caller's tier, or a list of them.", leftOut: 'any' },
  scope: { shape: oneOrMore(scope), text: 'The scope, or a list of them.', leftOut: 'any' },
})

/** Reads the conditions of a rule. A rule without any would leave nothing to `default`. */
export const match = {
  ...matchFields,
  words: `a map of ${Object.keys(matchFields.fields).join(', ')}`,
  schema: { ...matchFields.schema, minProperties: 1 },
  read(value: unknown, place: Place) {
    const counting = place.counting()
    const read = matchFields.read(value, counting.place)
    // Half a match would match more than was meant, and would seem to hide the rules below it.
    if (read === undefined || counting.count() > 0) return undefined
    if (Object.keys(read).length === 0) {
      const expected = `at least one of ${Object.keys(matchFields.fields).join(', ')}, or default for every request`
      return place.reject({ expected, got: 'none' })
    }
    return read
  },
}

/** Reads a charge: a tier or a policy, but not both. */
const chargeFields = record({
  tier: { shape: nameOf('tiers'), text: 'A tier.' },
  policy: { shape: nameOf('policies'), text: 'A policy.' },
})
export type ReadCharge = NonNullable<ReturnType<typeof chargeFields.read>>
export const charge: Shape<ReadCharge> & Pick<typeof chargeFields, 'fields'> = {
  fields: chargeFields.fields,
  words: 'a map with a tier or a policy',
  schema: { ...chargeFields.schema, minProperties: 1, maxProperties: 1 },
  read(value, place) {
    const counting = place.counting()
    const read = chargeFields.read(value, counting.place)
    if (read === undefined || counting.count() > 0) return undefined
    return isOneCharge(read, place) ? read : undefined
  },
}

function isOneCharge({ tier, policy }: ReadCharge, place: Place): boolean {
  if ((tier === undefined) !== (policy === undefined)) return true
  const got = tier === undefined ? 'neither' : 'both'
  place.reject({ expected: 'either a tier or a policy', got })
  return false
}

/** Reads the budget shared by all callers. */
export const globalBudget = record({
  policy: {
    shape: nameOf('policies'),
    text: 'The limits of the shared budget.',
    required: true,
  },
  ...enforcement,
})

/** Reads an entry of `also`: a further subject to charge. */
const also = record({
  subject: { shape: subjectType, text: 'The subject type.', required: true },
  policy: { shape: nameOf('policies'), text: 'The policy it is charged to.', required: true },
})

const ruleFields = record({
  name: {
    shape: text('up to 32 letters, digits, - or _', NAME),
    text: 'Names the rule in explanations, overrides and metrics.',
    leftOut: 'what it matches',
  },
  match: { shape: match, text: 'When it applies: all conditions must match.', required: true },
  policy: { shape: nameOf('policies'), text: 'The policy to charge …' },
  tier: { shape: nameOf('tiers'), text: '… or the tier.', leftOut: "the caller's" },
  cost: { shape: cost, text: 'Units a request takes.', leftOut: 'from `costs`, or 1' },
  per: {
    shape: choice(['caller', 'everyone']),
    text: "Whose budget is charged: each caller's own, or one shared by all callers.",
    leftOut: 'caller',
  },
  scope: {
    shape: scope,
    text: 'The scope of the budget; `global` is one budget for all routes.',
    leftOut: 'global',
  },
  also: {
    shape: listOf('a list of { subject, policy }', also, { atLeast: 1 }),
    text: 'Further subjects of the request to charge with it, by type, each with its own policy, all or none: the organisation of a user. A request without such a subject is charged without it.',
    leftOut: 'none',
  },
  refundIf: {
    shape: refundIf,
    text: 'Response statuses that give back what the request took: `[2xx, 3xx]` counts only failed logins, `304` makes unmodified responses free. `{ status: 304, atMost: 100/1m }` bounds what comes back to a caller, because clients can choose many a status; by default (`limit`) it is as much as the limits admit, once more.',
    leftOut: 'none',
  },
  ...enforcement,
  ...failure,
  priority: {
    shape: priority,
    text: 'How important a request is at an upstream that has not room for all: the lowest gives way first.',
    leftOut: "that of the caller's tier, or `normal`",
  },
  headers: {
    shape: headerStyle,
    text: 'The quota headers that the response carries.',
    leftOut: 'as for the file',
  },
})

export type ReadAlso = NonNullable<ReturnType<typeof also.read>>

/** A rule as read. */
export type ReadRule = NonNullable<ReturnType<typeof ruleFields.read>>

export const rule: RecordShape<typeof ruleFields.fields> = {
  ...ruleFields,
  schema: { ...ruleFields.schema, not: { required: ['policy', 'tier'] } },
  read(value, place) {
    const read = ruleFields.read(value, place)
    if (read?.policy === undefined || read.tier === undefined) return read
    return place.reject({ expected: 'either a tier or a policy', got: 'both' })
  },
}

/**
 * Validates the keys of `subjects`, which are `type:id`. An invalid key is not shown, because it may be a secret.
 */
export const subjectKeys = {
  schema: { pattern: '^[^:]+:[\\s\\S]+$' },
  objectionTo: (key: string) =>
    /^[^:]+:[\s\S]+$/.test(key)
      ? null
      : { expected: 'type:id, such as user:42', got: `a string of ${key.length} characters` },
}
