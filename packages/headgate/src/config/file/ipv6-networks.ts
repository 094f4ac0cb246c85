import type { Ipv6Networks } from '../../subject/subject.js'
import { describeValue } from '../describe-value.js'
import { isMapLike, mapOf } from '../shape/maps.js'
import { wholeNumber } from '../shape/scalars.js'
import type { Shape } from '../shape/shape.js'

const SIZE = /^\/(4[89]|5\d|6[0-3])$/
const sizes = mapOf('a map of networks', {
  keys: {
    schema: { pattern: SIZE.source },
    objectionTo: key =>
      SIZE.test(key) ? null : { expected: 'a size from /48 to /63', got: describeValue(key) },
  },
  values: wholeNumber(1, 65_536),
})

/** Reads the budgets of the networks around an IPv6 caller's /64. */
export const ipv6Networks: Shape<Ipv6Networks> = {
  words: '`off`, or a map such as `{ /56: 4, /48: 16 }`',
  schema: { anyOf: [{ enum: ['off'] }, sizes.schema] },
  read(value, place) {
    if (value === 'off') return value
    if (!isMapLike(value)) {
      return place.reject({
        expected: 'off, or a map such as { /56: 4, /48: 16 }',
        got: describeValue(value),
      })
    }
    return Object.fromEntries(sizes.read(value, place) ?? [])
  },
}
