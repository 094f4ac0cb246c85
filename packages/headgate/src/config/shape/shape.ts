/**
 * One part of the policy file, described once: how it is read, what a JSON Schema says of it, and what the
 * reference page calls it. All three come from the same object, so that they cannot say different things.
 */
import { looksSecret } from '../../errors/shown-text.js'
import type { Complaint, Path } from '../config-error.js'
import { describeValue } from '../describe-value.js'

export type JsonSchema = Readonly<Record<string, unknown>>

export interface Shape<T> {
  /** The expectation in words: completes "expected …" and stands in the reference. */
  readonly words: string
  readonly schema: JsonSchema
  /** The value, or undefined after every mistake in it was reported. */
  read(value: unknown, place: Place): T | undefined
}

/** The names a file defines; null where they cannot be told, so that one mistake is not reported as two. */
export interface Names {
  readonly tiers: ReadonlySet<string> | null
  readonly policies: ReadonlySet<string> | null
}

/** Notes a mistake. `at` says whether the key itself is wrong or what stands behind it. */
export type Report = (path: Path, complaint: Complaint, at: 'key' | 'value') => void

/** Where a value stands, and where to complain about it. */
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
   * Reports a mistake and returns undefined, as a shape does that could not read. Never shows what a key calls secret.
   */
  refuse(complaint: Complaint, at: 'key' | 'value' = 'value'): undefined {
    const key = this.path.at(-1)
    const isSecret = at === 'value' && typeof key === 'string' && looksSecret(key)
    this.#report(this.path, isSecret ? { ...complaint, got: 'a value that is not shown' } : complaint, at)
  }

  /** The same place, where mistakes are also counted. */
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
      check(value) ? (value as T) : place.refuse({ expected: words, got: describeValue(value) }),
  }
}
