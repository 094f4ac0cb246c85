import { MAX_UNITS } from '../../algorithms/algorithm.js'
import type { Duration } from '../../algorithms/durations.js'
import { HEADER_STYLES } from '../../policy/config.js'
import {
  parseWrittenBound,
  RATE,
  RATE_WORDS,
  type RefundRule,
  type WrittenBound,
} from '../../policy/refund-rule.js'
import type { Statuses } from '../../policy/statuses.js'
import { PRIORITIES } from '../../policy/tier-numbers.js'
import { DEFAULT_QUEUE, MAX_WAITING, parseAtMostMs, type Wait } from '../../policy/wait.js'
import { listOf, oneOrMore } from '../shape/lists.js'
import { forms, record } from '../shape/maps.js'
import { choice, NAME, type NameOf, nameOf, text, wholeNumber } from '../shape/scalars.js'
import { mapped, objectionTo, parsed, type ReadAs, type Shape, scalar } from '../shape/shape.js'
import { enforcement, failure } from './enforcement.js'
import { duration } from './limit.js'
import { method, pathPattern } from './path-pattern.js'
import { subjectType } from './subjects.js'
import { tokens } from './tokens.js'

export const headerStyle = choice(HEADER_STYLES)
export const cost = wholeNumber(0, MAX_UNITS)
const scope = text('a text of 1 to 64 letters, digits, ., _, - or /', /^[\w./-]{1,64}$/)

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
const CONDITIONS = Object.keys(matchFields.fields).join(', ')

/** Reads the conditions of a rule. A rule without any would leave nothing to `default`. */
export const match = {
  ...mapped(matchFields, (read, place) =>
    Object.keys(read).length > 0
      ? read
      : place.reject({
          expected: `at least one of ${CONDITIONS}, or default for every request`,
          got: 'none',
        }),
  ),
  words: `a map of ${CONDITIONS}`,
  schema: { ...matchFields.schema, minProperties: 1 },
}

const chargeFields = record({
  tier: { shape: nameOf('tiers'), text: 'A tier.' },
  policy: { shape: nameOf('policies'), text: 'A policy.' },
})
type WrittenCharge =
  | { readonly tier: NameOf<'tiers'>; readonly policy?: undefined }
  | { readonly policy: NameOf<'policies'>; readonly tier?: undefined }

/** Reads a charge: a tier or a policy, but not both. */
export const charge: Shape<ReadAs<typeof chargeFields>, WrittenCharge> = {
  words: 'a map with a tier or a policy',
  schema: { ...chargeFields.schema, minProperties: 1, maxProperties: 1 },
  read: mapped(chargeFields, (read, place) => {
    if ((read.tier === undefined) !== (read.policy === undefined)) return read
    return place.reject({
      expected: 'either a tier or a policy',
      got: read.tier === undefined ? 'neither' : 'both',
    })
  }).read,
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

const CLASSES = ['2xx', '3xx', '4xx', '5xx'] as const

/** Reads a status, or a class of them. */
const status = mapped(
  scalar<number | (typeof CLASSES)[number]>(
    `a status from 200 to 599, or one of ${CLASSES.join(', ')}`,
    { anyOf: [{ type: 'integer', minimum: 200, maximum: 599 }, { enum: CLASSES }] },
    value =>
      (Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599) ||
      CLASSES.includes(value as '2xx'),
  ),
  (value): Statuses => {
    if (typeof value === 'number') return { from: value, to: value }
    const from = Number(value[0]) * 100
    return { from, to: from + 99 }
  },
)

/** Reads the statuses that give back the charge. With all of them the rule would never count anything. */
const statuses = mapped(oneOrMore(status), (read, place) => {
  const isAll = [200, 300, 400, 500].every(first =>
    read.some(({ from, to }) => from === first && to === first + 99),
  )
  return isAll ? place.reject({ expected: 'a status that counts', got: 'all of them' }) : read
})

const atMost: Shape<WrittenBound> = {
  words: `${RATE_WORDS}, or limit`,
  schema: { anyOf: [{ type: 'string', pattern: RATE.source }, { const: 'limit' }] },
  read(value, place) {
    const objection = objectionTo(() => parseWrittenBound(value, 'atMost'))
    if (objection === null) return value as WrittenBound
    return place.reject({ ...objection, expected: `${objection.expected}, or limit` })
  },
}

const bounded = record({
  status: { shape: statuses, text: 'The statuses.', required: true },
  atMost: { shape: atMost, text: 'How much comes back at most, to a caller.', leftOut: 'limit' },
})

/** Reads which responses give back the charge: statuses, or a map of statuses and a bound. */
const refundIf = mapped(
  forms(`${statuses.words}, or a map of ${Object.keys(bounded.fields).join(', ')}`, {
    single: statuses,
    list: statuses,
    map: bounded,
  }),
  (read): RefundRule<WrittenBound> => {
    const { status, atMost = 'limit' } = 'status' in read ? read : { status: read }
    return { statuses: status, atMost: [atMost] }
  },
)

/** Reads how long the requests of a rule may wait for room. */
const wait = mapped(
  record({
    atMost: {
      shape: parsed<number, Duration>(duration.words, duration.schema, value =>
        parseAtMostMs(value, 'atMost'),
      ),
      text: 'How long a request is held at most, up to `1m`. One that needs longer is denied at once.',
      required: true,
    },
    queue: {
      shape: wholeNumber(1, MAX_WAITING),
      text: 'How many requests of one caller may wait at once in a process; one more is denied at once.',
      leftOut: String(DEFAULT_QUEUE),
    },
  }),
  ({ atMost, queue = DEFAULT_QUEUE }): Wait => ({ atMostMs: atMost, queue }),
)

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
  policy: {
    shape: nameOf('policies'),
    text: 'The policy to charge; [`login`](../guide/logins.md), unless the file has its own, also brings `per`, `also` and `resetIf` where the rule has none …',
  },
  tier: { shape: nameOf('tiers'), text: '… or the tier.', leftOut: "the caller's" },
  cost: { shape: cost, text: 'Units a request takes.', leftOut: 'from `costs`, or 1' },
  per: {
    shape: forms('caller, everyone, or a list of at least two subject types', {
      words: ['caller', 'everyone'],
      list: listOf('a list of at least two subject types', subjectType, { atLeast: 2 }),
    }),
    text: "Whose budget is charged: each caller's own, one shared by all callers, or a list of subject types: `[user, ip]` charges an account at an address as one. A request without one of these subjects is charged to the caller's own.",
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
  resetIf: {
    shape: statuses,
    text: 'Response statuses that forget what the caller has used here, [strikes](../guide/bans.md) included: `[2xx, 3xx]` for a login that succeeds. Others who pay with it (`also`) get back what this request took.',
    leftOut: 'none',
  },
  tokens: {
    shape: tokens,
    text: "The tokens of a model behind the gateway: each request reserves an estimate, and its response's `usage` settles it.",
    leftOut: 'not limited',
  },
  wait: {
    shape: wait,
    text: 'Lets a request wait for room instead of being denied: `{ atMost: 500ms, queue: 100 }`, at most so long, and so many of one caller at once. In adapters, the gateway and forward auth.',
    leftOut: 'none waits',
  },
  ...enforcement,
  ...failure,
  priority: {
    shape: choice(PRIORITIES),
    text: 'How important a request is at an upstream that has not room for all: the lowest gives way first.',
    leftOut: "that of the caller's tier, or `normal`",
  },
  headers: {
    shape: headerStyle,
    text: 'The quota headers that the response carries.',
    leftOut: 'as for the file',
  },
})

export const rule: typeof ruleFields = {
  ...ruleFields,
  schema: { ...ruleFields.schema, not: { required: ['policy', 'tier'] } },
}

/** A rule as read. */
export type ReadRule = ReadAs<typeof rule>
