import {
  type Algorithm,
  isLimit,
  type Limit,
  MAX_UNITS,
  type OptionField,
} from '../../algorithms/algorithm.js'
import { fileAlgorithms, type WrittenLimit } from '../../algorithms/all-algorithms.js'
import { type BanLimit, type BanOptions, banAlgorithm, MAX_STRIKES } from '../../algorithms/ban.js'
import { PERS, WEEKDAYS } from '../../algorithms/calendar.js'
import { MAX_PERMITS } from '../../algorithms/concurrency.js'
import type { Duration } from '../../algorithms/durations.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { nearestName } from '../../errors/nearest-name.js'
import { parsePolicy } from '../../policy/policies.js'
import { describeValue } from '../describe-value.js'
import { type Fields, isMisspelt, peekMap, readKnown, readMap, recordSchema } from '../shape/maps.js'
import { NAME } from '../shape/scalars.js'
import { type JsonSchema, objectionTo, type Place, type Shape } from '../shape/shape.js'

/** A shape that only documents a value, because the library itself validates it. */
export function documented<T>(words: string, schema: JsonSchema): Shape<T> {
  return { words, schema, read: value => value as T }
}

function whole(minimum: number, maximum: number): Shape<number> {
  return documented(`a whole number from ${minimum} to ${maximum}`, { type: 'integer', minimum, maximum })
}

export const duration = documented<Duration>(
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
  strikes: whole(1, MAX_STRIKES),
  parts: whole(1, 1_000),
  duration,
  durations: documented('a duration, or a list of durations', {
    anyOf: [duration.schema, { type: 'array', items: duration.schema, minItems: 1 }],
  }),
  rate: documented('a number above 0', { type: 'number', exclusiveMinimum: 0 }),
  period: documented('one of `day`, `week`, `month`, `year`', { enum: PERS }),
  timeZone: documented('a time zone of the IANA database, such as `Europe/Berlin`', { type: 'string' }),
  anchor: documented('a weekday, a day of the month, or a date such as `04-01`', {
    anyOf: [
      { enum: WEEKDAYS },
      { type: 'integer', minimum: 1, maximum: 31 },
      { type: 'string', pattern: String.raw`^\d\d-\d\d$` },
    ],
  }),
  rollover: documented('a map with the number `most`', {
    type: 'object',
    properties: { most: { type: 'integer', minimum: 0, maximum: MAX_UNITS } },
    required: ['most'],
    additionalProperties: false,
  }),
  overage: documented('`count`', { const: 'count' }),
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
export const limit: Shape<Limit, Limit | WrittenLimit> = {
  words: 'a limit',
  schema: { anyOf: [...algorithms].map(([name, fields]) => schemaOf(name, fields)) },
  read(value, place) {
    // A text cannot express one: its algorithm is a name.
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

/** A limit to try the other parts of a policy with. */
export const SAMPLE = slidingWindowLog({ limit: 1, window: '1m' })

/** The fields of a ban, for the reference. */
export const banFields: Fields = fieldsOf(banAlgorithm)

/** Reads the ban of a policy. In code, also accepts what `ban()` returns. */
export const ban: Shape<BanLimit, BanLimit | BanOptions> = {
  words: 'a map with `after`, `within` and `for`',
  schema: recordSchema(banFields),
  read(value, place) {
    if (isLimit(value)) {
      const objection = objectionTo(() => parsePolicy('made', [SAMPLE], value))
      return objection === null ? (value as BanLimit) : place.reject(objection)
    }
    if (readMap(value, place) === null) return undefined
    return readLimit(value, banAlgorithm, place, []) as BanLimit | undefined
  },
}

/** Reads the options of a limit of this algorithm. */
export function readLimit(
  value: unknown,
  algorithm: Algorithm,
  place: Place,
  besides: readonly string[] = ['algorithm'],
): Limit | undefined {
  const before = place.mistakes
  const names = Object.keys(algorithm.fields)
  const given = readKnown(value, [...besides, ...names], place)
  const options: Record<string, unknown> = {}
  const sample: Record<string, unknown> = { ...algorithm.sample }
  for (const name of names) {
    if (given?.has(name) !== true && !(name in algorithm.sample)) continue
    if (given?.has(name) === false && isMisspelt(name, given, algorithm.fields)) continue
    const value = given?.get(name)
    const map = peekMap(value)
    options[name] = map === null ? value : Object.fromEntries(map)
    const objection = objectionTo(() => algorithm.parse({ ...sample, [name]: options[name] }))
    if (objection !== null) place.below(name).reject(objection)
    // What other options mean depends on it.
    else if (algorithm.fields[name]?.kind === 'period') sample[name] = options[name]
  }
  if (place.mistakes > before) return undefined
  // Each value is valid by itself; together they may still not be.
  const objection = objectionTo(() => algorithm.parse(options))
  return objection === null ? algorithm.parse(options) : place.reject(objection)
}

function schemaOf(name: string, fields: Fields): JsonSchema {
  const shape = documented(name, { const: name })
  const text = 'The algorithm; the guide says how to choose one.'
  return recordSchema({ algorithm: { shape, text, required: true }, ...fields })
}
