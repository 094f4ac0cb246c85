import {
  parseRefundBound,
  RATE,
  RATE_WORDS,
  type RefundBound,
  type RefundRule,
} from '../../policy/refund-rule.js'
import type { Statuses } from '../../policy/statuses.js'
import { describeValue } from '../describe-value.js'
import { oneOrMore, type ReadList, sound } from '../shape/lists.js'
import { isMapLike, record } from '../shape/maps.js'
import { objectionTo } from '../shape/objection.js'
import type { JsonSchema, Shape } from '../shape/shape.js'

const LEAST = 200
const MOST = 599
const CLASSES = ['2xx', '3xx', '4xx', '5xx'] as const

/** Reads a status, or a class of them. */
const status: Shape<Statuses> = {
  words: `a status from ${LEAST} to ${MOST}, or one of ${CLASSES.join(', ')}`,
  schema: { anyOf: [{ type: 'integer', minimum: LEAST, maximum: MOST }, { enum: CLASSES }] },
  read(value, place) {
    if (Number.isInteger(value) && Number(value) >= LEAST && Number(value) <= MOST) {
      return { from: Number(value), to: Number(value) }
    }
    if (CLASSES.includes(value as '2xx')) {
      const from = Number((value as string)[0]) * 100
      return { from, to: from + 99 }
    }
    return place.reject({ expected: status.words, got: describeValue(value) })
  },
}

const list = oneOrMore(status)

/**
 * Reads the statuses that give back the charge. All of them are rejected, because the rule would never count
 * anything.
 */
const statuses: Shape<ReadList<Statuses>> = {
  ...list,
  read(value, place) {
    const read = list.read(value, place)
    const isAll = CLASSES.every((_, index) =>
      sound(read).some(({ from, to }) => from === (index + 2) * 100 && to === from + 99),
    )
    if (!isAll) return read
    return place.reject({ expected: 'a status that counts', got: 'all of them' })
  },
}

const atMost: Shape<RefundBound> = {
  words: `${RATE_WORDS}, or limit`,
  schema: { anyOf: [{ type: 'string', pattern: RATE.source }, { const: 'limit' }] },
  read(value, place) {
    const objection = objectionTo(() => parseRefundBound(value, 'atMost'))
    if (objection === null) return value as RefundBound
    return place.reject({ ...objection, expected: `${objection.expected}, or limit` })
  },
}

const bounded = record({
  status: { shape: statuses, text: 'The statuses.', required: true },
  atMost: { shape: atMost, text: 'How much comes back at most, to a caller.', leftOut: 'limit' },
})

/** Reads which responses give back the charge: statuses, or a map of statuses and a bound. */
export const refundIf: Shape<RefundRule> = {
  words: `${statuses.words}, or a map of ${Object.keys(bounded.fields).join(', ')}`,
  schema: { anyOf: [...(statuses.schema.anyOf as readonly JsonSchema[]), bounded.schema] },
  read(value, place) {
    const { status: read, atMost = 'limit' } = isMapLike(value)
      ? { ...bounded.read(value, place) }
      : { status: statuses.read(value, place) }
    return read === undefined ? undefined : { statuses: sound(read), atMost: [atMost] }
  },
}
