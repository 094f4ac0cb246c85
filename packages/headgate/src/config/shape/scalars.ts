import { nearestName } from '../../errors/nearest-name.js'
import { describeValue } from '../describe-value.js'
import { READY_POLICIES } from '../ready-policies.js'
import { mapped, type Names, type Shape, scalar } from './shape.js'

/** One of a few words. */
export function choice<const Word extends string>(
  choices: readonly Word[],
  words = `one of ${choices.join(', ')}`,
): Shape<Word> {
  return {
    words,
    schema: { enum: choices },
    read(value, place) {
      if (choices.includes(value as Word)) return value as Word
      return place.reject({
        expected: words,
        got: describeValue(value),
        suggestion: nearestName(value, choices),
      })
    },
  }
}

/** A text that matches a pattern, which the schema uses too. */
export function text<Written extends string = string>(
  words: string,
  pattern: RegExp,
): Shape<string, Written> {
  return scalar<Written>(
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

/** A percentage such as `25%`, read as 25. */
export const percentage = mapped(
  text<`${number}%`>('a percentage from 0% to 100%, such as 25%', /^(100(\.0{1,2})?|\d{1,2}(\.\d{1,2})?)%$/),
  value => Number(value.slice(0, -1)),
)

/** The name of a policy, a tier, a rule or a limit. */
export const NAME = /^[A-Za-z0-9_-]{1,32}$/

declare const KIND: unique symbol
/** Stands, in the types of what is written in code, for the names that a configuration defines. */
export type NameOf<Kind extends keyof Names> = string & { readonly [KIND]: Kind }

const NONE: ReadonlySet<string> = new Set()

/** The name of a tier or policy that the file defines, or that is ready. */
export function nameOf<Kind extends keyof Names>(kind: Kind): Shape<string, NameOf<Kind>> {
  const one = kind === 'tiers' ? 'tier' : 'policy'
  const ready = kind === 'tiers' ? NONE : READY_POLICIES
  return {
    words: `the name of a ${one}`,
    schema: { type: 'string', pattern: NAME.source },
    read(value, place) {
      const known = place.names[kind]
      if (known === null) return String(value)
      if (typeof value === 'string' && (known.has(value) || ready.has(value))) return value
      // Getters, because a file full of mistakes must not search all its names for mistakes that are never shown.
      return place.reject({
        get expected() {
          return known.size === 0 ? 'one that the file defines' : `one of ${listed(known, ready)}`
        },
        got: describeValue(value),
        get suggestion() {
          return nearestName(value, [...known, ...ready])
        },
      })
    },
  }
}

const MAX_LISTED = 20

function listed(names: ReadonlySet<string>, ready: ReadonlySet<string>): string {
  const shown = new Set([...[...names].slice(0, MAX_LISTED), ...ready])
  const first = [...shown].join(', ')
  return names.size > MAX_LISTED ? `${first} and ${names.size - MAX_LISTED} more` : first
}
