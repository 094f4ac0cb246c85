import { nearestName } from '../../errors/nearest-name.js'
import { type Complaint, formatPath } from '../config-error.js'
import { describeValue } from '../describe-value.js'
import { type JsonSchema, Place, type Shape } from './shape.js'

/** One key of a map. */
export interface Field<T> {
  readonly shape: Shape<T>
  /** A sentence for the reference and for editors. */
  readonly text: string
  /** The value that applies if it is left out, as it would be written. */
  readonly leftOut?: string
  readonly required?: boolean
}

export type Fields = Readonly<Record<string, Field<unknown>>>

/** The fields that were read. A missing one was left out or invalid. */
export type Read<F extends Fields> = {
  readonly [Key in keyof F]?: F[Key] extends Field<infer T> ? T : never
}

/** A map with known keys. */
export interface RecordShape<F extends Fields> extends Shape<Read<F>> {
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
  return readMap(value, new Place([], { tiers: null, policies: null }, () => {}))
}

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
    const where = place.path.length === 0 ? 'at the top' : `in ${formatPath(place.path)}`
    const complaint = { expected: `one of ${known.join(', ')} ${where}`, got: describeValue(key) }
    place.below(key).reject({ ...complaint, suggestion: nearestName(key, known) }, 'key')
  }
  return fields
}

/** A map with known keys, each with its own shape. */
export function record<const F extends Fields>(fields: F): RecordShape<F> {
  return {
    fields,
    words: 'a map',
    schema: recordSchema(fields),
    read(value, place) {
      const given = readKnown(value, Object.keys(fields), place)
      return given === null ? undefined : readFields(given, fields, place)
    },
  }
}

/** Reads the known keys of a map, and reports missing ones. */
function readFields<F extends Fields>(given: ReadonlyMap<string, unknown>, fields: F, place: Place): Read<F> {
  const read: Record<string, unknown> = {}
  for (const [key, { shape, required }] of Object.entries(fields)) {
    const here = place.below(key)
    if (!given.has(key)) {
      if (required) here.reject({ expected: shape.words, got: 'nothing' })
      continue
    }
    const value = shape.read(given.get(key), here)
    if (value !== undefined) read[key] = value
  }
  return read as Read<F>
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

/** A map from user-chosen names to values of one shape. */
export function mapOf<T>(
  words: string,
  { keys, values }: { readonly keys: Keys; readonly values: Shape<T> },
): Shape<ReadonlyMap<string, T>> {
  return {
    words,
    schema: { type: 'object', propertyNames: keys.schema, additionalProperties: values.schema },
    read(value, place) {
      if (!isMapLike(value)) return place.reject({ expected: words, got: kindOnly(value) })
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

/** Hides the text itself, because in place of a map of subjects it may be a subject. */
function kindOnly(value: unknown): string {
  return typeof value === 'string' ? 'a text' : describeValue(value)
}
