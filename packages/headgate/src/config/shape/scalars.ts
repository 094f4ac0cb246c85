import { nearestName } from '../../errors/nearest-name.js'
import { describeValue } from '../describe-value.js'
import { type Names, type Shape, scalar } from './shape.js'

/** One of a few words. */
export function choice<const Word extends string>(words: readonly Word[]): Shape<Word> {
  const expected = `one of ${words.join(', ')}`
  return {
    words: expected,
    schema: { enum: words },
    read(value, place) {
      if (words.includes(value as Word)) return value as Word
      return place.reject({ expected, got: describeValue(value), suggestion: nearestName(value, words) })
    },
  }
}

/** A text that matches a pattern, which the schema uses too. */
export function text(words: string, pattern: RegExp): Shape<string> {
  return scalar(
    words,
    { type: 'string', pattern: pattern.source },
    value => typeof value === 'string' && pattern.test(value),
  )
}

/** A whole number in a range. */
export function wholeNumber(minimum: number, maximum: number): Shape<number> {
  return scalar(
    `a whole number from ${minimum} to ${maximum}`,
    { type: 'integer', minimum, maximum },
    value => Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum,
  )
}

const PERCENT = /^(100(\.0{1,2})?|\d{1,2}(\.\d{1,2})?)%$/

/** A percentage such as `25%`, read as 25. */
export const percentage: Shape<number> = {
  words: 'a percentage from 0% to 100%, such as 25%',
  schema: { type: 'string', pattern: PERCENT.source },
  read(value, place) {
    if (typeof value === 'string' && PERCENT.test(value)) return Number(value.slice(0, -1))
    return place.reject({ expected: percentage.words, got: describeValue(value) })
  },
}

/** The name of a policy, a tier, a rule or a limit. */
export const NAME = /^[A-Za-z0-9_-]{1,32}$/

/** The name of a tier or policy that the file defines. */
export function nameOf(kind: keyof Names): Shape<string> {
  const one = kind === 'tiers' ? 'tier' : 'policy'
  return {
    words: `the name of a ${one}`,
    schema: { type: 'string', pattern: NAME.source },
    read(value, place) {
      const known = place.names[kind]
      if (known === null || (typeof value === 'string' && known.has(value))) return String(value)
      // Getters, because a file full of mistakes must not search all its names for mistakes that are never shown.
      return place.reject({
        get expected() {
          return known.size === 0 ? 'one that the file defines' : `one of ${listed(known)}`
        },
        got: describeValue(value),
        get suggestion() {
          return nearestName(value, known)
        },
      })
    },
  }
}

const MAX_LISTED = 20

function listed(names: ReadonlySet<string>): string {
  const all = [...names]
  const first = all.slice(0, MAX_LISTED).join(', ')
  return all.length > MAX_LISTED ? `${first} and ${all.length - MAX_LISTED} more` : first
}
