import { isHeadgateError } from '../../errors/headgate-error.js'
import { looksSecret } from '../../errors/shown-text.js'
import type { Complaint, Path } from '../config-error.js'
import { describeValue } from '../describe-value.js'

/** A JSON Schema, as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * One part of the policy file, described once: how it is read, its JSON Schema, its words in the reference, and the type
 * in which it is written in code. All four come from the same object, so that they cannot contradict each other.
 */
export interface Shape<T, Written = T> {
  /** The expectation in words: completes "expected …", and appears in the reference. */
  readonly words: string
  readonly schema: JsonSchema
  /** Returns the value, or undefined after reporting every mistake in it. */
  read(value: unknown, place: Place): T | undefined
  /** Never set: carries the type in which it is written in code. */
  readonly written?: Written
}

/** What a shape reads a value as. */
export type ReadAs<S> = S extends Shape<infer T, unknown> ? T : never

/** The type in which a shape's value is written in code. */
export type WrittenAs<S> = S extends Shape<unknown, infer Written> ? Written : never

/** The names a file defines. Null if unknown, so that one mistake is not reported as two. */
export interface Names {
  readonly tiers: ReadonlySet<string> | null
  readonly policies: ReadonlySet<string> | null
}

/** Records a mistake. `at` says whether the key or its value is wrong. */
export type Report = (path: Path, complaint: Complaint, at: 'key' | 'value') => void

/** What all places of one file share. */
interface Reading {
  readonly names: Names
  readonly report: Report
  mistakes: number
}

/** The position of a value, and where to report mistakes in it. */
export class Place {
  readonly #reading: Reading
  readonly #parent: Place | null
  readonly #part: string | number

  private constructor(reading: Reading, parent: Place | null, part: string | number) {
    this.#reading = reading
    this.#parent = parent
    this.#part = part
  }

  /** The place of a whole file. */
  static top(names: Names, report: Report): Place {
    return new Place({ names, report, mistakes: 0 }, null, '')
  }

  get names(): Names {
    return this.#reading.names
  }

  get path(): Path {
    return this.#parent === null ? [] : [...this.#parent.path, this.#part]
  }

  /** How many mistakes have been reported in the whole file so far. */
  get mistakes(): number {
    return this.#reading.mistakes
  }

  below(...parts: Path): Place {
    return parts.reduce<Place>((place, part) => new Place(this.#reading, place, part), this)
  }

  /**
   * Reports a mistake and returns undefined, as a shape does that could not read. Hides the value if its key looks
   * like a secret.
   */
  reject(complaint: Complaint, at: 'key' | 'value' = 'value'): undefined {
    const { report } = this.#reading
    const isSecret = at === 'value' && typeof this.#part === 'string' && looksSecret(this.#part)
    this.#reading.mistakes++
    report(this.path, isSecret ? { ...complaint, got: 'a value that is not shown' } : complaint, at)
  }
}

/** A shape for single values: `check` says whether one is accepted as it is. */
export function scalar<T>(words: string, schema: JsonSchema, check: (value: unknown) => boolean): Shape<T> {
  return {
    words,
    schema,
    read: (value, place) =>
      check(value) ? (value as T) : place.reject({ expected: words, got: describeValue(value) }),
  }
}

/** A shape for values that the library itself validates, so that the file and the code accept the same. */
export function parsed<T, Written = T>(
  words: string,
  schema: JsonSchema,
  parse: (value: unknown) => T,
): Shape<T, Written> {
  return {
    words,
    schema,
    read(value, place) {
      const objection = objectionTo(() => parse(value))
      return objection === null ? parse(value) : place.reject(objection)
    },
  }
}

/** A shape whose value is checked further, or converted: `convert` returns undefined after rejecting it. */
export function mapped<S extends Shape<unknown, unknown>, T>(
  shape: S,
  convert: (value: ReadAs<S>, place: Place) => T | undefined,
): Omit<S, 'read' | 'written'> & Shape<T, WrittenAs<S>> {
  return {
    ...shape,
    read(value: unknown, place: Place) {
      const read = shape.read(value, place)
      return read === undefined ? undefined : convert(read as ReadAs<S>, place)
    },
  } as Omit<S, 'read' | 'written'> & Shape<T, WrittenAs<S>>
}

/** Returns the library's objection to a value, or null if it accepts it. */
export function objectionTo(make: () => unknown): Complaint | null {
  try {
    make()
    return null
  } catch (error) {
    if (!isHeadgateError(error)) throw error
    const { expected = error.message, got = 'something else', suggestion = null } = error
    // What code calls undefined is a line left out in a file.
    return { expected, got: got === 'undefined' || got === 'null' ? 'nothing' : got, suggestion }
  }
}
