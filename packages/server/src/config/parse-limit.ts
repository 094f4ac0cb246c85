import {
  type CounterOptions,
  type Limit,
  slidingWindowCounter,
  slidingWindowLog,
  type TokenBucketOptions,
  tokenBucket,
  type WindowOptions,
} from 'headgate'
import { describeValue } from '../wording/describe-value.js'
import { suggestion } from '../wording/nearest-name.js'
import type { Path, Report } from './config-problem.js'
import { objectionTo } from './objection.js'
import { readFields, readMap } from './read-map.js'

interface Maker {
  readonly fields: readonly string[]
  /** Values that the library takes; each field of the file is tried among these. */
  readonly sample: Readonly<Record<string, unknown>>
  make(options: Readonly<Record<string, unknown>>): Limit
}

// The options come from a file; the library checks them, the types cannot.
const MAKERS = new Map<unknown, Maker>([
  [
    'sliding-window-log',
    {
      fields: ['limit', 'window', 'name'],
      sample: { limit: 1, window: '1m' },
      make: options => slidingWindowLog(options as unknown as WindowOptions),
    },
  ],
  [
    'sliding-window-counter',
    {
      fields: ['limit', 'window', 'buckets', 'name'],
      sample: { limit: 1, window: '1m' },
      make: options => slidingWindowCounter(options as unknown as CounterOptions),
    },
  ],
  [
    'token-bucket',
    {
      fields: ['capacity', 'refillPerSecond', 'name'],
      sample: { capacity: 1, refillPerSecond: 1 },
      make: options => tokenBucket(options as unknown as TokenBucketOptions),
    },
  ],
])

/** One limit of a policy, or null after every mistake in it was reported. */
export function parseLimit(value: unknown, path: Path, report: Report): Limit | null {
  const algorithm = readMap(value, path, () => {})?.get('algorithm')
  const maker = MAKERS.get(algorithm)
  if (maker === undefined) {
    if (readMap(value, path, report) !== null) reportAlgorithm(algorithm, path, report)
    return null
  }
  let sound = true
  const note: Report = (at, message, side) => {
    sound = false
    report(at, message, side)
  }
  const fields = readFields(value, ['algorithm', ...maker.fields], { path, report: note })
  const options: Record<string, unknown> = {}
  for (const field of maker.fields) {
    const given = fields?.get(field)
    if (given === undefined && !(field in maker.sample)) continue
    options[field] = given
    const objection = objectionTo(() => maker.make({ ...maker.sample, [field]: given }))
    if (objection !== null) note([...path, field], objection)
  }
  if (!sound) return null
  // Each value is possible by itself; together they may still not be.
  const objection = objectionTo(() => maker.make(options))
  if (objection === null) return maker.make(options)
  report(path, objection)
  return null
}

function reportAlgorithm(algorithm: unknown, path: Path, report: Report): void {
  const names = [...MAKERS.keys()].map(String)
  const hint = typeof algorithm === 'string' ? suggestion(algorithm, names) : ''
  report(
    [...path, 'algorithm'],
    `expected one of ${names.join(', ')}; got ${describeValue(algorithm)}${hint}`,
  )
}
