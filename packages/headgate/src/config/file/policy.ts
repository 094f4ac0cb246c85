import type { Limit } from '../../algorithms/algorithm.js'
import { MAX_UNITS } from '../../algorithms/algorithm.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { type LeaseOptions, leaseLimits } from '../../policy/leases.js'
import { parsePolicy } from '../../policy/policies.js'
import { listOf, type ReadList } from '../shape/lists.js'
import { isMapLike, type Keys, mapOf, peekMap, record } from '../shape/maps.js'
import { objectionTo } from '../shape/objection.js'
import { choice, NAME, wholeNumber } from '../shape/scalars.js'
import type { Place, Shape } from '../shape/shape.js'
import { enforcement, failure } from './enforcement.js'
import { duration, limit } from './limit.js'

const SAMPLE = slidingWindowLog({ limit: 1, window: '1m' })

const list = listOf('a list of limits', limit, { atLeast: 1 })

/** Reads a list of limits. A single limit stands for a list of one, as in the library. */
const limits: Shape<ReadList<Limit>> = {
  words: 'a limit, or a list of limits',
  schema: { anyOf: [limit.schema, list.schema] },
  read(value, place) {
    if (isMapLike(value)) return [limit.read(value, place)]
    const read = list.read(value, place)
    if (read !== undefined) rejectTwins(read, place)
    return read
  },
}

const leaseNumbers = record({
  max: { shape: wholeNumber(1, MAX_UNITS), text: 'The most units taken at once.', required: true },
  ttl: { shape: duration, text: 'How long they may be spent.', required: true },
})
const leaseWord = choice(['auto', 'off'])

/** The library validates it against the limits. */
const lease: Shape<LeaseOptions> = {
  words: '`auto`, `off`, or `{ max, ttl }`',
  schema: { anyOf: [leaseWord.schema, leaseNumbers.schema] },
  read(value, place) {
    if (!isMapLike(value)) return leaseWord.read(value, place)
    return leaseNumbers.read(value, place) as LeaseOptions | undefined
  },
}

/** The long form of a policy. */
const longForm = record({
  limits: { shape: limits, text: 'Charged together, or not at all.', required: true },
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
})

/** Reads the long form of a policy. */
export const policy = {
  ...longForm,
  read(value: unknown, place: Place): ReturnType<typeof longForm.read> {
    const read = longForm.read(value, place)
    if (read?.lease !== undefined) rejectLease(read.limits, read.lease, place)
    return read
  },
}

/** A policy as read, in either form. */
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
  objectionTo: name => objectionTo(() => parsePolicy(name, [SAMPLE])),
}

/** Reads policies by name. */
export const policies = mapOf('a map of policies', { keys: names, values: anyForm })

function isLongForm(value: unknown): boolean {
  const keys = peekMap(value)
  return keys !== null && !keys.has('algorithm') && Object.keys(policy.fields).some(key => keys.has(key))
}

/** Validated only if all limits are valid. */
function rejectLease(read: ReadList<Limit> | undefined, options: LeaseOptions, place: Place): void {
  const limits = (read ?? []).filter(limit => limit !== undefined)
  if (read === undefined || limits.length < read.length) return
  // Missing parts have been reported as missing.
  if (typeof options === 'object' && (options.max === undefined || options.ttl === undefined)) return
  const field = typeof options === 'object' && isTooLong(limits, options) ? 'ttl' : 'max'
  const objection = objectionTo(() => leaseLimits('lease', limits, options))
  if (objection !== null) place.below('lease').below(field).reject(objection)
}

function isTooLong(limits: readonly Limit[], { ttl }: Exclude<LeaseOptions, string>): boolean {
  return objectionTo(() => leaseLimits('lease', limits, { max: 1, ttl })) !== null
}

/** Two limits with one name would share their state. */
function rejectTwins(read: ReadList<Limit>, place: Place): void {
  const ids = new Set<string>()
  for (const [index, limit] of read.entries()) {
    if (limit === undefined) continue
    if (ids.has(limit.id)) {
      const expected = 'a limit unlike those above it, or a name for it'
      place.below(index).reject({ expected, got: `"${limit.id}" again` })
    }
    ids.add(limit.id)
  }
}
