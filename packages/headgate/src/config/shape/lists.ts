import { describeValue } from '../describe-value.js'
import type { Shape } from './shape.js'

/** Values of one shape, in order. */
export function listOf<T, Written>(
  words: string,
  items: Shape<T, Written>,
  { atLeast = 0 } = {},
): Shape<readonly T[], readonly Written[]> {
  return {
    words,
    schema: { type: 'array', items: items.schema, ...(atLeast > 0 && { minItems: atLeast }) },
    read(value, place) {
      if (!Array.isArray(value) || value.length < atLeast) {
        return place.reject({ expected: words, got: describeValue(value) })
      }
      const read = value.map((item, index) => items.read(item, place.below(index)))
      return read.includes(undefined) ? undefined : (read as readonly T[])
    },
  }
}

/** One value, or a list of at least one. */
export function oneOrMore<T, Written>(
  items: Shape<T, Written>,
): Shape<readonly T[], Written | readonly Written[]> {
  const list = listOf(`${items.words}, or a list`, items, { atLeast: 1 })
  return {
    words: list.words,
    schema: { anyOf: [items.schema, list.schema] },
    read(value, place) {
      if (Array.isArray(value)) return list.read(value, place)
      const item = items.read(value, place)
      return item === undefined ? undefined : [item]
    },
  }
}
