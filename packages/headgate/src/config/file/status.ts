import type { Statuses } from '../../policy/statuses.js'
import { describeValue } from '../describe-value.js'
import { oneOrMore, type ReadList, sound } from '../shape/lists.js'
import type { Shape } from '../shape/shape.js'

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
    return place.refuse({ expected: status.words, got: describeValue(value) })
  },
}

const list = oneOrMore(status)

/**
 * Reads the statuses that give back the charge. All of them are refused, because the rule would never count
 * anything.
 */
export const refundedStatuses: Shape<ReadList<Statuses>> = {
  ...list,
  read(value, place) {
    const read = list.read(value, place)
    const isAll = CLASSES.every((_, index) =>
      sound(read).some(({ from, to }) => from === (index + 2) * 100 && to === from + 99),
    )
    if (!isAll) return read
    return place.refuse({ expected: 'a status that counts', got: 'all of them' })
  },
}
