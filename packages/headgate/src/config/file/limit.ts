import type { Limit } from '../../engine/limit.js'
import { nearestName } from '../../errors/nearest-name.js'
import {
  type ConcurrencyOptions,
  type CounterOptions,
  concurrency,
  MAX_PLACES,
  MAX_UNITS,
  slidingWindowCounter,
  slidingWindowLog,
  type TokenBucketOptions,
  tokenBucket,
  type WindowOptions,
} from '../../policy/limits.js'
import { parsePolicies } from '../../policy/policies.js'
import { describeValue } from '../describe-value.js'
import { type Fields, peekMap, readKnown, readMap, recordSchema } from '../shape/maps.js'
import { objectionTo } from '../shape/objection.js'
import { NAME } from '../shape/scalars.js'
import type { JsonSchema, Place, Shape } from '../shape/shape.js'

type Options = Readonly<Record<string, unknown>>

interface Maker {
  readonly fields: Fields
  /** Values the library accepts; each field of the file is tried among them. */
  readonly sample: Options
  make(options: Options): Limit
}

/** A shape that only documents a value, because the library itself validates it. */
function documented(words: string, schema: JsonSchema): Shape<unknown> {
  return { words, schema, read: value => value }
}

const units = documented(`a whole number from 0 to ${MAX_UNITS}`, {
  type: 'integer',
  minimum: 0,
  maximum: MAX_UNITS,
})
export const duration = documented(
  'a duration such as `500ms`, `10s`, `1m`, `1h`, `1d`, or a number of seconds',
  {
    anyOf: [
      { type: 'string', pattern: String.raw`^\d{1,12}(\.\d{1,6})?(ms|s|m|h|d)$` },
      { type: 'number', exclusiveMinimum: 0, maximum: 366 * 86_400 },
    ],
  },
)
const NAME_FIELD = {
  shape: documented('up to 32 letters, digits, `-` or `_`', { type: 'string', pattern: NAME.source }),
  text: 'Distinguishes two limits of the same kind and window.',
}
const COUNTS_FIELD = {
  shape: documented('one of `cost`, `requests`', { enum: ['cost', 'requests'] }),
  text: 'What a request takes: `cost`, the default, or with `requests` one unit whatever it costs.',
}
const LIMIT_FIELD = { shape: units, text: 'Units per window; 0 is a ban.', required: true }
const WINDOW_FIELD = { shape: duration, text: 'How long a unit counts.', required: true }

// The options come from a file, so the library validates them at run time.
const MAKERS = new Map<unknown, Maker>([
  [
    'sliding-window-log',
    {
      fields: { limit: LIMIT_FIELD, window: WINDOW_FIELD, counts: COUNTS_FIELD, name: NAME_FIELD },
      sample: { limit: 1, window: '1m' },
      make: options => slidingWindowLog(options as unknown as WindowOptions),
    },
  ],
  [
    'sliding-window-counter',
    {
      fields: {
        limit: LIMIT_FIELD,
        window: WINDOW_FIELD,
        buckets: {
          shape: documented('a whole number from 1 to 1000', { type: 'integer', minimum: 1, maximum: 1_000 }),
          text: 'Divides the window into parts and counts the oldest as a whole: exact in any window, slightly stricter.',
        },
        counts: COUNTS_FIELD,
        name: NAME_FIELD,
      },
      sample: { limit: 1, window: '1m' },
      make: options => slidingWindowCounter(options as unknown as CounterOptions),
    },
  ],
  [
    'token-bucket',
    {
      fields: {
        capacity: {
          shape: units,
          text: 'Tokens in a full bucket: the most that can be used at once.',
          required: true,
        },
        refillPerSecond: {
          shape: documented('a number above 0', { type: 'number', exclusiveMinimum: 0 }),
          text: 'Tokens added each second.',
          required: true,
        },
        counts: COUNTS_FIELD,
        name: NAME_FIELD,
      },
      sample: { capacity: 1, refillPerSecond: 1 },
      make: options => tokenBucket(options as unknown as TokenBucketOptions),
    },
  ],
  [
    'concurrency',
    {
      fields: {
        limit: {
          shape: documented(`a whole number from 0 to ${MAX_PLACES}`, {
            type: 'integer',
            minimum: 0,
            maximum: MAX_PLACES,
          }),
          text: 'Requests in progress at once, whatever they cost; 0 is a ban.',
          required: true,
        },
        holdFor: {
          shape: duration,
          text: 'How long a place is kept after its process has died, from `1s` to `1h`. Default `30s`.',
        },
        name: NAME_FIELD,
      },
      sample: { limit: 1 },
      make: options => concurrency(options as unknown as ConcurrencyOptions),
    },
  ],
])

/** The fields of each algorithm, for the reference. */
export const algorithms: ReadonlyMap<string, Fields> = new Map(
  [...MAKERS].map(([algorithm, { fields }]) => [String(algorithm), fields]),
)

/** Reads one limit of a policy. In code, also accepts what `slidingWindowLog()` and the other functions return. */
export const limit: Shape<Limit> = {
  words: 'a limit',
  schema: { anyOf: [...MAKERS].map(([algorithm, { fields }]) => schemaOf(algorithm, fields)) },
  read(value, place) {
    if (isMade(value)) {
      const objection = objectionTo(() => parsePolicies({ made: value }))
      return objection === null ? value : place.refuse(objection)
    }
    const algorithm = peekMap(value)?.get('algorithm')
    const maker = MAKERS.get(algorithm)
    if (maker !== undefined) return readLimit(value, maker, place)
    if (readMap(value, place) === null) return undefined
    const expected = `one of ${[...algorithms.keys()].join(', ')}`
    const suggestion = nearestName(algorithm, algorithms.keys())
    return place.below('algorithm').refuse({ expected, got: describeValue(algorithm), suggestion })
  },
}

function readLimit(value: unknown, maker: Maker, place: Place): Limit | undefined {
  const counting = place.counting()
  const names = Object.keys(maker.fields)
  const given = readKnown(value, ['algorithm', ...names], counting.place)
  const options: Record<string, unknown> = {}
  for (const name of names) {
    if (!given?.has(name) && !(name in maker.sample)) continue
    options[name] = given?.get(name)
    const objection = objectionTo(() => maker.make({ ...maker.sample, [name]: options[name] }))
    if (objection !== null) counting.place.below(name).refuse(objection)
  }
  if (counting.count() > 0) return undefined
  // Each value is valid by itself; together they may still not be.
  const objection = objectionTo(() => maker.make(options))
  return objection === null ? maker.make(options) : place.refuse(objection)
}

/**
 * Whether a limit was made in code. A text cannot express that: its maps are `Map`s, and it has neither `id` nor
 * `quota`.
 */
function isMade(value: unknown): value is Limit {
  if (typeof value !== 'object' || value === null || value instanceof Map) return false
  const { id, quota, algorithm } = value as Partial<Limit>
  return typeof id === 'string' && typeof quota === 'object' && typeof algorithm === 'string'
}

function schemaOf(algorithm: unknown, fields: Fields): JsonSchema {
  const shape: Shape<unknown> = documented(String(algorithm), { const: algorithm })
  const text = 'The algorithm; the guide says how to choose one.'
  return recordSchema({ algorithm: { shape, text, required: true }, ...fields })
}
