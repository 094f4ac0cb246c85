import { MAX_UNITS } from '../../algorithms/algorithm.js'
import { parseUnits } from '../../algorithms/limit-options.js'
import { parseTier } from '../../policy/policies.js'
import { DEFAULT_TIERS, PRIORITIES, type TierOptions } from '../../policy/tier-numbers.js'
import { tierLimits } from '../../policy/tiers.js'
import { forms, type Keys, mapOf, record } from '../shape/maps.js'
import { choice, NAME } from '../shape/scalars.js'
import { mapped, objectionTo, type Shape } from '../shape/shape.js'
import { documented } from './limit.js'

const UNLIMITED = 'unlimited'

const rate: Shape<number | typeof UNLIMITED> = {
  words: 'a whole number, or `unlimited`',
  schema: { anyOf: [{ type: 'integer', minimum: 0, maximum: MAX_UNITS }, { const: UNLIMITED }] },
  read(value, place) {
    const objection = value === UNLIMITED ? null : objectionTo(() => parseUnits(value, 'rate'))
    if (objection === null) return value as number | typeof UNLIMITED
    return place.reject({ ...objection, expected: `${objection.expected}, or ${UNLIMITED}` })
  },
}

/** Reads the numbers of one tier. A burst multiplies the minute's, so it is validated beside it. */
export const tier = mapped(
  record({
    minute: { shape: rate, text: 'Units a minute.', leftOut: 'unlimited' },
    hour: { shape: rate, text: 'Units an hour.', leftOut: 'unlimited' },
    day: { shape: rate, text: 'Units a day.', leftOut: 'unlimited' },
    month: { shape: rate, text: 'Units in a calendar month of UTC.', leftOut: 'unlimited' },
    burst: {
      shape: documented<number>('a number of at least 1 that gives a whole number', {
        type: 'number',
        minimum: 1,
      }),
      text: "How many times the minute's number may be used at once.",
      leftOut: '1',
    },
    priority: {
      shape: choice(PRIORITIES),
      text: 'How important its requests are at an upstream that has not room for all: the lowest give way first.',
      leftOut: '`normal`',
    },
  }),
  (read, place): TierOptions | undefined => {
    const objection = objectionTo(() => tierLimits(read))
    return objection === null ? read : place.below('burst').reject(objection)
  },
)

const names: Keys = {
  schema: { pattern: NAME.source },
  objectionTo: name => objectionTo(() => parseTier(name, {}, [])),
}

/** Reads tiers by name. `default` is the set that a public API starts with. */
export const tiers = mapped(
  forms('a map of tiers, or "default"', {
    words: ['default'],
    map: mapOf('a map of tiers', { keys: names, values: tier }),
  }),
  (read): ReadonlyMap<string, TierOptions> =>
    read === 'default' ? new Map(Object.entries(DEFAULT_TIERS)) : read,
)
