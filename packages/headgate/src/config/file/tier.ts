import { MAX_UNITS } from '../../algorithms/algorithm.js'
import { parseTier } from '../../policy/policies.js'
import { defaultTiers, PRIORITIES, type TierOptions, tierLimits } from '../../policy/tiers.js'
import { describeValue } from '../describe-value.js'
import { isMapLike, type Keys, mapOf, readKnown, record } from '../shape/maps.js'
import { objectionTo } from '../shape/objection.js'
import { choice, NAME } from '../shape/scalars.js'
import type { Place, Shape } from '../shape/shape.js'

const RATES = ['minute', 'hour', 'day'] as const
const DEFAULT_SET = 'default'

const rate: Shape<number | 'unlimited'> = {
  words: 'a whole number, or `unlimited`',
  schema: { anyOf: [{ type: 'integer', minimum: 0, maximum: MAX_UNITS }, { const: 'unlimited' }] },
  read: value => value as number | 'unlimited',
}
const burst: Shape<number> = {
  words: 'a number of at least 1 that gives a whole number',
  schema: { type: 'number', minimum: 1 },
  read: value => value as number,
}

/** Reads the numbers of one tier. The library validates them; a burst is valid only beside its minute. */
export const tier = {
  ...record({
    minute: { shape: rate, text: 'Units a minute.', leftOut: 'unlimited' },
    hour: { shape: rate, text: 'Units an hour.', leftOut: 'unlimited' },
    day: { shape: rate, text: 'Units a day.', leftOut: 'unlimited' },
    burst: { shape: burst, text: "How many times the minute's number may be used at once.", leftOut: '1' },
    priority: {
      shape: choice(PRIORITIES),
      text: 'How important its requests are at an upstream that has not room for all: the lowest give way first.',
      leftOut: '`normal`',
    },
  }),
  read: readTier,
}

const names: Keys = {
  schema: { pattern: NAME.source },
  objectionTo: name => objectionTo(() => parseTier(name, {})),
}

const named = mapOf(`a map of tiers, or "${DEFAULT_SET}"`, { keys: names, values: tier })

/** Reads tiers by name. `default` is the set that a public API starts with. */
export const tiers: Shape<ReadonlyMap<string, TierOptions>> = {
  words: named.words,
  schema: { anyOf: [{ const: DEFAULT_SET }, named.schema] },
  read(value, place) {
    if (value === DEFAULT_SET) return new Map(Object.entries(defaultTiers))
    if (isMapLike(value)) return named.read(value, place)
    return place.reject({ expected: named.words, got: describeValue(value) })
  },
}

function readTier(value: unknown, place: Place): TierOptions | undefined {
  const given = readKnown(value, Object.keys(tier.fields), place)
  if (given === null) return undefined
  const numbers: Record<string, unknown> = {}
  for (const name of RATES) {
    if (!given.has(name)) continue
    const number = given.get(name)
    const objection = objectionTo(() => tierLimits({ [name]: number }))
    if (objection === null) numbers[name] = number
    else place.below(name).reject({ ...objection, expected: `${objection.expected}, or unlimited` })
  }
  // A burst multiplies the minute's number, so it can only be validated beside it.
  const minuteIsSound = numbers.minute !== undefined || !given.has('minute')
  if (given.has('burst') && minuteIsSound) {
    const tier = { minute: numbers.minute, burst: given.get('burst') } as TierOptions
    const objection = objectionTo(() => tierLimits(tier))
    if (objection === null) numbers.burst = tier.burst
    else place.below('burst').reject(objection)
  }
  const priority = given.has('priority')
    ? tier.fields.priority.shape.read(given.get('priority'), place.below('priority'))
    : undefined
  return { ...numbers, ...(priority !== undefined && { priority }) }
}
