import { describeValue } from '../describe-value.js'
import type { Shape } from './shape.js'

/** Values of one shape, in order. An invalid one is undefined, so that the others keep their positions. */
export type ReadList<T> = readonly (T | undefined)[]

/** A list of values of one shape. */
export function listOf<T>(words: string, items: Shape<T>, { atLeast = 0 } = {}): Shape<ReadList<T>> {
  return {
    words,
    schema: { type: 'array', items: items.schema, ...(atLeast > 0 && { minItems: atLeast }) },
    read(value, place) {
      if (!Array.isArray(value) || value.length < atLeast) {
        return place.reject({ expected: words, got: describeValue(value) })
      }
      return value.map((item, index) => items.read(item, place.below(index)))
    },
  }
}

/** One value, or a list of at least one. */
export function oneOrMore<T>(items: Shape<T>): Shape<ReadList<T>> {
  const list = listOf(`${items.words}, or a list`, items, { atLeast: 1 })
  return {
    words: list.words,
    schema: { anyOf: [items.schema, list.schema] },
    read(value, place) {
      return Array.isArray(value) ? list.read(value, place) : [items.read(value, place)]
    },
  }
}

/** Returns the valid items of a list. */
export function sound<T>(list: ReadList<T> | undefined): readonly T[] {
  return (list ?? []).filter(item => item !== undefined)
}
