import type { Mask, Masks } from '../../policy/config.js'
import { foldType } from '../../subject/subject.js'
import { describeValue } from '../describe-value.js'
import { isMapLike, mapOf } from '../shape/maps.js'
import { choice, NAME } from '../shape/scalars.js'
import type { Shape } from '../shape/shape.js'

const OTHERS = '*'
const words: readonly Mask[] = ['part', 'whole', 'hidden']
const mask = choice(words)
const byType = mapOf('a map of subject types', {
  keys: {
    schema: { anyOf: [{ enum: [OTHERS] }, { pattern: NAME.source }] },
    // The key may be a whole subject whose id is a secret, so it is not shown.
    objectionTo: key =>
      key === OTHERS || NAME.test(key)
        ? null
        : { expected: 'a subject type, or * for all others', got: `a string of ${key.length} characters` },
  },
  values: mask,
})

/** Reads how subjects are shown to operators: one word for all, or one per subject type. */
export const masks: Shape<Masks> = {
  words: '`part`, `whole` or `hidden`, or a map such as `{ user: hidden, "*": part }`',
  schema: { anyOf: [mask.schema, byType.schema] },
  read(value, place) {
    if (!isMapLike(value)) {
      if (words.includes(value as Mask)) return { byType: {}, others: value as Mask }
      return place.reject({
        expected: 'part, whole or hidden, or a map of them by subject type',
        got: describeValue(value),
      })
    }
    const read = byType.read(value, place)
    if (read === undefined) return undefined
    const { [OTHERS]: others = 'part', ...types } = Object.fromEntries(read)
    return {
      byType: Object.fromEntries(Object.entries(types).map(([type, word]) => [foldType(type), word])),
      others,
    }
  },
}
