import {
  type Algorithm,
  isLimit,
  type Limit,
  MAX_UNITS,
  type OptionField,
} from '../../algorithms/algorithm.js'
import { fileAlgorithms } from '../../algorithms/all-algorithms.js'
import { MAX_PERMITS } from '../../algorithms/concurrency.js'
import { nearestName } from '../../errors/nearest-name.js'
import { parsePolicy } from '../../policy/policies.js'
import { describeValue } from '../describe-value.js'
import { type Fields, peekMap, readKnown, readMap, recordSchema } from '../shape/maps.js'
import { objectionTo } from '../shape/objection.js'
import { NAME } from '../shape/scalars.js'
import type { JsonSchema, Place, Shape } from '../shape/shape.js'

/** A shape that only documents a value, because the library itself validates it. */
function documented(words: string, schema: JsonSchema): Shape<unknown> {
  return { words, schema, read: value => value }
}

function whole(least: number, most: number): Shape<unknown> {
  return documented(`a whole number from ${least} to ${most}`, {
    type: 'integer',
    minimum: least,
    maximum: most,
  })
}

export const duration = documented(
  'a duration such as `500ms`, `10s`, `1m`, `1h`, `1d`, or a number of seconds',
  {
    anyOf: [
      { type: 'string', pattern: String.raw`^\d{1,12}(\.\d{1,6})?(ms|s|m|h|d)$` },
      { type: 'number', exclusiveMinimum: 0, maximum: 366 * 86_400 },
    ],
  },
)

/** How each kind of option is documented. The algorithm validates it. */
const SHAPES: Readonly<Record<OptionField['kind'], Shape<unknown>>> = {
  units: whole(0, MAX_UNITS),
  permits: whole(0, MAX_PERMITS),
  parts: whole(1, 1_000),
  duration,
  rate: documented('a number above 0', { type: 'number', exclusiveMinimum: 0 }),
  counts: documented('one of `cost`, `requests`', { enum: ['cost', 'requests'] }),
  name: documented('up to 32 letters, digits, `-` or `_`', { type: 'string', pattern: NAME.source }),
}

function fieldsOf({ fields }: Algorithm): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, { kind, ...field }]) => [name, { shape: SHAPES[kind], ...field }]),
  )
}

/** The fields of each algorithm, for the reference. */
export const algorithms: ReadonlyMap<string, Fields> = new Map(
  [...fileAlgorithms].map(([name, algorithm]) => [name, fieldsOf(algorithm)]),
)

/** Reads one limit of a policy. In code, also accepts what `slidingWindowLog()` and the other functions return. */
export const limit: Shape<Limit> = {
  words: 'a limit',
  schema: { anyOf: [...algorithms].map(([name, fields]) => schemaOf(name, fields)) },
  read(value, place) {
    // A text cannot express one: its maps are `Map`s, and its algorithm is a name.
    if (isLimit(value)) {
      const objection = objectionTo(() => parsePolicy('made', [value]))
      return objection === null ? value : place.reject(objection)
    }
    const name = peekMap(value)?.get('algorithm')
    const algorithm = typeof name === 'string' ? fileAlgorithms.get(name) : undefined
    if (algorithm !== undefined) return readLimit(value, algorithm, place)
    if (readMap(value, place) === null) return undefined
    const expected = `one of ${[...algorithms.keys()].join(', ')}`
    const suggestion = nearestName(name, algorithms.keys())
    return place.below('algorithm').reject({ expected, got: describeValue(name), suggestion })
  },
}

function readLimit(value: unknown, algorithm: Algorithm, place: Place): Limit | undefined {
  const counting = place.counting()
  const names = Object.keys(algorithm.fields)
  const given = readKnown(value, ['algorithm', ...names], counting.place)
  const options: Record<string, unknown> = {}
  for (const name of names) {
    if (!given?.has(name) && !(name in algorithm.sample)) continue
    options[name] = given?.get(name)
    const objection = objectionTo(() => algorithm.parse({ ...algorithm.sample, [name]: options[name] }))
    if (objection !== null) counting.place.below(name).reject(objection)
  }
  if (counting.count() > 0) return undefined
  // Each value is valid by itself; together they may still not be.
  const objection = objectionTo(() => algorithm.parse(options))
  return objection === null ? algorithm.parse(options) : place.reject(objection)
}

function schemaOf(name: string, fields: Fields): JsonSchema {
  const shape: Shape<unknown> = documented(name, { const: name })
  const text = 'The algorithm; the guide says how to choose one.'
  return recordSchema({ algorithm: { shape, text, required: true }, ...fields })
}
