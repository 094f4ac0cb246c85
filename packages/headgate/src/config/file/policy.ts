import { type Limit, MAX_UNITS } from '../../algorithms/algorithm.js'
import { type LeaseOptions, leaseLimits } from '../../policy/leases.js'
import { parsePolicy } from '../../policy/policies.js'
import { listOf } from '../shape/lists.js'
import { forms, type Keys, mapOf, peekMap, record } from '../shape/maps.js'
import { NAME, wholeNumber } from '../shape/scalars.js'
import { mapped, objectionTo, type Place, type ReadAs, type Shape, type WrittenAs } from '../shape/shape.js'
import { enforcement, failure } from './enforcement.js'
import { ban, duration, limit, SAMPLE } from './limit.js'

/** Reads limits. A single one stands for a list of one, as in the library. Two with one name would share their state. */
const limits = forms('a limit, or a list of limits', {
  map: mapped(limit, (one): readonly Limit[] => [one]),
  list: mapped(listOf('a list of limits', limit, { atLeast: 1 }), (all, place) => {
    const twin = all.findIndex(({ id }, index) => all.findIndex(one => one.id === id) < index)
    if (twin < 0) return all
    const expected = 'a limit unlike those above it, or a name for it'
    return place.below(twin).reject({ expected, got: `"${all[twin]?.id}" again` })
  }),
})

/** The library validates it against the limits. */
const lease: Shape<LeaseOptions> = forms('`auto`, `off`, or `{ max, ttl }`', {
  words: ['auto', 'off'],
  map: record({
    max: { shape: wholeNumber(1, MAX_UNITS), text: 'The most units taken at once.', required: true },
    ttl: { shape: duration, text: 'How long they may be spent.', required: true },
  }),
})

/** Reads the long form of a policy. */
export const policy = mapped(
  record({
    limits: { shape: limits, text: 'Charged together, or not at all.', required: true },
    ban: { shape: ban, text: 'Bans who is denied too often, for longer each time.' },
    lease: {
      shape: lease,
      text: 'Lets hot keys take units in advance and spend them in the process: `auto`, or at most `max` units for `ttl`.',
    },
    ...enforcement,
    candidate: {
      shape: limits,
      text: 'Limits to try: evaluated in the same call as the live ones and reported, never enforced.',
    },
    ...failure,
  }),
  (read, place) => (read.lease === undefined || isLeasable(read, read.lease, place) ? read : undefined),
)

/** A policy as read, in either form. */
export type ReadPolicy = ReadAs<typeof policy>

const anyForm: Shape<ReadPolicy, WrittenAs<typeof limits> | WrittenAs<typeof policy>> = {
  words: 'a limit, a list of limits, or a map with `limits`',
  schema: { anyOf: [...(limits.schema.anyOf as object[]), policy.schema] },
  read(value, place) {
    if (isLongForm(value)) return policy.read(value, place)
    const read = limits.read(value, place)
    return read === undefined ? undefined : { limits: read }
  },
}

const names: Keys = {
  schema: { pattern: NAME.source, not: { const: 'tier' } },
  objectionTo: name => objectionTo(() => parsePolicy(name, [SAMPLE])),
}

/** Reads policies by name. */
export const policies = mapOf('a map of policies', { keys: names, values: anyForm })

function isLongForm(value: unknown): boolean {
  const keys = peekMap(value)
  return keys !== null && !keys.has('algorithm') && Object.keys(policy.fields).some(key => keys.has(key))
}

function isLeasable(
  { limits, ban }: { readonly limits: readonly Limit[]; readonly ban?: Limit | undefined },
  options: LeaseOptions,
  place: Place,
): boolean {
  // Every request is held to a ban, whatever was taken in advance.
  if (ban !== undefined && options !== 'off') {
    place.below('lease').reject({ expected: 'none beside a ban', got: 'one' })
    return false
  }
  const objection = objectionTo(() => leaseLimits('lease', limits, options))
  if (objection === null) return true
  // If even one unit cannot be leased for so long, the time is what is wrong.
  const isTooLong =
    typeof options === 'object' &&
    objectionTo(() => leaseLimits('lease', limits, { ...options, max: 1 })) !== null
  place.below('lease', isTooLong ? 'ttl' : 'max').reject(objection)
  return false
}
