import type { Limit } from '../../engine/limit.js'
import { slidingWindowLog } from '../../policy/limits.js'
import { parsePolicies } from '../../policy/policies.js'
import { listOf, type ReadList } from '../shape/lists.js'
import { isMapLike, type Keys, mapOf, peekMap, record } from '../shape/maps.js'
import { objectionTo } from '../shape/objection.js'
import { NAME } from '../shape/scalars.js'
import type { Place, Shape } from '../shape/shape.js'
import { enforcement, failure } from './enforcement.js'
import { limit } from './limit.js'

const SAMPLE = slidingWindowLog({ limit: 1, window: '1m' })

const list = listOf('a list of limits', limit, { atLeast: 1 })

/** A list of limits; a single one may stand for a list of one, as in the library. */
const limits: Shape<ReadList<Limit>> = {
  words: 'a limit, or a list of limits',
  schema: { anyOf: [limit.schema, list.schema] },
  read(value, place) {
    if (isMapLike(value)) return [limit.read(value, place)]
    const read = list.read(value, place)
    if (read !== undefined) refuseTwins(read, place)
    return read
  },
}

/** The long form of a policy. */
export const policy = record({
  limits: { shape: limits, text: 'Charged together, or not at all.', required: true },
  ...enforcement,
  candidate: {
    shape: limits,
    text: 'Limits to try: evaluated beside the live ones in the same call and reported, never enforced.',
  },
  ...failure,
})

/** A policy as it was read, in whichever form it was written. */
export type ReadPolicy = NonNullable<ReturnType<typeof policy.read>>

const anyForm: Shape<ReadPolicy> = {
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
  objectionTo: name => objectionTo(() => parsePolicies({ [name]: SAMPLE })),
}

/** Lists of limits by name. */
export const policies = mapOf('a map of policies', { keys: names, values: anyForm })

function isLongForm(value: unknown): boolean {
  const keys = peekMap(value)
  return keys !== null && !keys.has('algorithm') && Object.keys(policy.fields).some(key => keys.has(key))
}

/** Two limits of one name would share what is used. */
function refuseTwins(read: ReadList<Limit>, place: Place): void {
  const ids = new Set<string>()
  for (const [index, limit] of read.entries()) {
    if (limit === undefined) continue
    if (ids.has(limit.id)) {
      const expected = 'a limit unlike those above it, or a name for it'
      place.below(index).refuse({ expected, got: `"${limit.id}" again` })
    }
    ids.add(limit.id)
  }
}
