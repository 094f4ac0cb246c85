import { createLimiter, defaultTiers, type TierOptions } from 'headgate'
import { describeValue } from '../wording/describe-value.js'
import type { Path, Report } from './config-problem.js'
import { objectionTo } from './objection.js'
import { readFields, readMap } from './read-map.js'

const RATES = ['minute', 'hour', 'day']
const DEFAULT_SET = 'default'

/**
 * The `tiers` of a file by name, or null after saying that they are none. `default`, or nothing, is the set a public
 * API starts with.
 */
export function parseTiers(value: unknown, report: Report): ReadonlyMap<string, TierOptions> | null {
  if (value === undefined || value === DEFAULT_SET) return new Map(Object.entries(defaultTiers))
  if (!(value instanceof Map)) {
    report(['tiers'], `expected a map of tiers, or "${DEFAULT_SET}"; got ${describeValue(value)}`)
    return null
  }
  const tiers = new Map<string, TierOptions>()
  for (const [name, numbers] of readMap(value, ['tiers'], report) ?? []) {
    const path = ['tiers', name]
    const objection = objectionTo(() => createLimiter({ tiers: { [name]: {} } }))
    if (objection !== null) report(path, objection, 'key')
    tiers.set(name, parseTier(numbers, path, report))
  }
  return tiers
}

function parseTier(value: unknown, path: Path, report: Report): TierOptions {
  const fields = readFields(value, [...RATES, 'burst'], { path, report })
  const tier: Record<string, unknown> = {}
  for (const rate of RATES) {
    if (!fields?.has(rate)) continue
    const given = fields.get(rate)
    const objection = objectionTo(() => limiterOf({ [rate]: given }))
    if (objection === null) tier[rate] = given
    else report([...path, rate], objection.replace('; got', ', or unlimited; got'))
  }
  // A burst multiplies the minute, so it can only be judged beside it.
  const minuteIsSound = tier.minute !== undefined || !fields?.has('minute')
  if (fields?.has('burst') && minuteIsSound) {
    const burst = fields.get('burst')
    const objection = objectionTo(() => limiterOf({ minute: tier.minute, burst }))
    if (objection === null) tier.burst = burst
    else report([...path, 'burst'], objection)
  }
  return tier as TierOptions
}

/** The numbers come from a file; the library checks them, the types cannot. */
function limiterOf(tier: Readonly<Record<string, unknown>>): unknown {
  return createLimiter({ tiers: { tier: tier as TierOptions } })
}
