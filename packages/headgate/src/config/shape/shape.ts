/** A JSON Schema, as plain data. */
import { looksSecret } from '../../errors/shown-text.js'
import type { Complaint, Path } from '../config-error.js'
import { describeValue } from '../describe-value.js'

export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * One part of the policy file, described once: how it is read, its JSON Schema, and its words in the reference. All
 * three come from the same object, so that they cannot contradict each other.
 */
export interface Shape<T> {
  /** The expectation in words: completes "expected …", and appears in the reference. */
  readonly words: string
  readonly schema: JsonSchema
  /** Returns the value, or undefined after reporting every mistake in it. */
  read(value: unknown, place: Place): T | undefined
}

/** The names a file defines. Null if unknown, so that one mistake is not reported as two. */
export interface Names {
  readonly tiers: ReadonlySet<string> | null
  readonly policies: ReadonlySet<string> | null
}

/** Records a mistake. `at` says whether the key or its value is wrong. */
export type Report = (path: Path, complaint: Complaint, at: 'key' | 'value') => void

/** The position of a value, and where to report mistakes in it. */
export class Place {
  readonly path: Path
  readonly names: Names
  readonly #report: Report

  constructor(path: Path, names: Names, report: Report) {
    this.path = path
    this.names = names
    this.#report = report
  }

  below(part: string | number): Place {
    return new Place([...this.path, part], this.names, this.#report)
  }

  /**
   * Reports a mistake and returns undefined, as a shape does that could not read. Hides the value if its key looks
   * like a secret.
   */
  reject(complaint: Complaint, at: 'key' | 'value' = 'value'): undefined {
    const key = this.path.at(-1)
    const isSecret = at === 'value' && typeof key === 'string' && looksSecret(key)
    this.#report(this.path, isSecret ? { ...complaint, got: 'a value that is not shown' } : complaint, at)
  }

  /** Returns the same place with a count of the mistakes reported through it. */
  counting(): { readonly place: Place; count(): number } {
    let count = 0
    const report: Report = (path, complaint, at) => {
      count++
      this.#report(path, complaint, at)
    }
    return { place: new Place(this.path, this.names, report), count: () => count }
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
