import { nearestName } from '../../errors/nearest-name.js'
import { type Complaint, formatPath } from '../config-error.js'
import { describeValue } from '../describe-value.js'
import { choice } from './scalars.js'
import { type JsonSchema, Place, type ReadAs, type Shape, type WrittenAs } from './shape.js'

/** One key of a map. */
export interface Field<T, Written = T> {
  readonly shape: Shape<T, Written>
  /** A sentence for the reference and for editors. */
  readonly text: string
  /** The value that applies if it is left out, as it would be written. */
  readonly leftOut?: string
  readonly required?: true
}

export type Fields = Readonly<Record<string, Field<unknown, unknown>>>

type Required = { readonly required: true }

/** An intersection as one object, so that editors show its fields. */
type Flat<T> = { [Key in keyof T]: T[Key] }

/** A map as it is read. */
type ReadFields<F extends Fields> = Flat<
  {
    readonly [Key in keyof F as F[Key] extends Required ? Key : never]: ReadAs<F[Key]['shape']>
  } & {
    readonly [Key in keyof F as F[Key] extends Required ? never : Key]?: ReadAs<F[Key]['shape']>
  }
>

/** A map as it is written in code. */
type WrittenFields<F extends Fields> = Flat<
  {
    readonly [Key in keyof F as F[Key] extends Required ? Key : never]: WrittenAs<F[Key]['shape']>
  } & {
    readonly [Key in keyof F as F[Key] extends Required ? never : Key]?: WrittenAs<F[Key]['shape']>
  }
>

/** A map with known keys. */
export interface RecordShape<F extends Fields> extends Shape<ReadFields<F>, WrittenFields<F>> {
  readonly fields: F
}

/**
 * Returns the entries of a map whose keys are all text. Reports anything else and returns null. In code, a map is a
 * plain object.
 */
export function readMap(value: unknown, place: Place): ReadonlyMap<string, unknown> | null {
  const entries = entriesOf(value)
  if (entries === null) {
    place.reject({ expected: 'a map', got: describeValue(value) })
    return null
  }
  const fields = new Map<string, unknown>()
  for (const [key, field] of entries) {
    if (typeof key !== 'string')
      place.below(String(key)).reject({ expected: 'a key that is text', got: describeValue(key) }, 'key')
    else if (key === '__proto__')
      place.below(key).reject({ expected: 'another key', got: 'one that is reserved' }, 'key')
    else fields.set(key, field)
  }
  return fields
}

/** Whether a value is a map, or in code an object used as one. */
export function isMapLike(value: unknown): boolean {
  return entriesOf(value) !== null
}

/** Reads a map like `readMap`, for a first look: mistakes are left for the actual reading to report. */
export function peekMap(value: unknown): ReadonlyMap<string, unknown> | null {
  return readMap(value, NOWHERE)
}

const NOWHERE = Place.top({ tiers: null, policies: null }, () => {})

function entriesOf(value: unknown): Iterable<[unknown, unknown]> | null {
  if (value instanceof Map) return value
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  return Object.entries(value).filter(([, field]) => field !== undefined)
}

/** Reads a map with known keys. Unknown keys are reported, with the one that was probably meant. */
export function readKnown(
  value: unknown,
  known: readonly string[],
  place: Place,
): ReadonlyMap<string, unknown> | null {
  const fields = readMap(value, place)
  for (const key of fields?.keys() ?? []) {
    if (known.includes(key)) continue
    // Getters, because a file full of mistakes must not search the names for those that are never shown.
    const complaint = {
      get expected() {
        const { path } = place
        return `one of ${known.join(', ')} ${path.length === 0 ? 'at the top' : `in ${formatPath(path)}`}`
      },
      got: describeValue(key),
      get suggestion() {
        return nearestName(key, known)
      },
    }
    place.below(key).reject(complaint, 'key')
  }
  return fields
}

/** A map with known keys, each with its own shape. */
export function record<F extends Fields>(fields: F): RecordShape<F> {
  return {
    fields,
    words: 'a map',
    schema: recordSchema(fields),
    read(value, place) {
      const before = place.mistakes
      const read = readFields(fields, value, place)
      return place.mistakes === before ? (read as ReadFields<F>) : undefined
    },
  }
}

/** The same map, of which the valid parts are read even if others are not. */
export function partsOf<F extends Fields>(
  whole: RecordShape<F>,
): Shape<Partial<ReadFields<F>>, WrittenAs<RecordShape<F>>> {
  return { ...whole, read: (value, place) => readFields(whole.fields, value, place) }
}

/** Reads the valid parts of a map, and reports the others and those that are missing. */
function readFields<F extends Fields>(fields: F, value: unknown, place: Place): Partial<ReadFields<F>> {
  const given = readKnown(value, Object.keys(fields), place)
  const read: Record<string, unknown> = {}
  for (const [key, { shape, required }] of Object.entries(given === null ? {} : fields)) {
    if (given?.has(key)) {
      const part = shape.read(given.get(key), place.below(key))
      if (part !== undefined) read[key] = part
    } else if (required && !isMisspelt(key, given, fields)) {
      place.below(key).reject({ expected: shape.words, got: 'nothing' })
    }
  }
  return read as Partial<ReadFields<F>>
}

/** How many unknown keys of a map are compared with one that is missing. */
const MOST_COMPARED = 10

/** Whether a key that is missing is there under a name that `readKnown` has told as a misspelling of it. */
export function isMisspelt(
  key: string,
  given: ReadonlyMap<string, unknown> | null,
  known: Readonly<Record<string, unknown>>,
): boolean {
  const unknown = [...(given?.keys() ?? [])].filter(name => !Object.hasOwn(known, name))
  return unknown.slice(0, MOST_COMPARED).some(name => nearestName(name, Object.keys(known)) === key)
}

/** Returns the JSON Schema of a map with known keys. */
export function recordSchema(fields: Fields): JsonSchema {
  const required = Object.keys(fields).filter(key => fields[key]?.required)
  return {
    type: 'object',
    additionalProperties: false,
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(
      Object.entries(fields).map(([key, { shape, text }]) => [key, { description: text, ...shape.schema }]),
    ),
  }
}

/** The keys a map may have. */
export interface Keys {
  readonly schema: JsonSchema
  /** Returns a complaint about a key, or null. */
  objectionTo(key: string): Complaint | null
}

/** A map from user-chosen names to values of one shape. Invalid ones are left out. */
export function mapOf<T, Written>(
  words: string,
  { keys, values }: { readonly keys: Keys; readonly values: Shape<T, Written> },
): Shape<ReadonlyMap<string, T>, Readonly<Record<string, Written>>> {
  return {
    words,
    schema: { type: 'object', propertyNames: keys.schema, additionalProperties: values.schema },
    read(value, place) {
      // The text itself is hidden, because in place of a map of subjects it may be a subject.
      const got = typeof value === 'string' ? 'a text' : describeValue(value)
      if (!isMapLike(value)) return place.reject({ expected: words, got })
      const read = new Map<string, T>()
      for (const [key, given] of readMap(value, place) ?? []) {
        const objection = keys.objectionTo(key)
        if (objection !== null) place.below(key).reject(objection, 'key')
        const item = values.read(given, place.below(key))
        if (item !== undefined && objection === null) read.set(key, item)
      }
      return read
    },
  }
}

type AnyShape = Shape<unknown, unknown>

/** The forms of a value: one of a few words, any other single value, a list, a map. */
interface Forms {
  readonly words?: readonly string[]
  readonly single?: AnyShape
  readonly list?: AnyShape
  readonly map?: AnyShape
}

type WordsOf<F extends Forms> = F['words'] extends readonly (infer Word)[] ? Word : never
type ShapesOf<F extends Forms> = F[Exclude<keyof F, 'words'>]

/** A value that may be written in several forms, told apart by their kind. */
export function forms<const F extends Forms>(
  words: string,
  { words: choices, single = choices && choice(choices, words), list, map }: F,
): Shape<WordsOf<F> | ReadAs<ShapesOf<F>>, WordsOf<F> | WrittenAs<ShapesOf<F>>> {
  const all = new Set([single, list, map].filter(shape => shape !== undefined))
  return {
    words,
    schema: { anyOf: [...all].map(({ schema }) => schema) },
    read(value, place) {
      const shape = isMapLike(value) ? map : Array.isArray(value) ? list : single
      if (shape === undefined) return place.reject({ expected: words, got: describeValue(value) })
      return shape.read(value, place) as WordsOf<F> | ReadAs<ShapesOf<F>> | undefined
    },
  }
}
