import { createLimiter, type Limit, type PolicyOptions, slidingWindowLog } from 'headgate'
import { describeValue } from '../wording/describe-value.js'
import type { Path, Report } from './config-problem.js'
import { objectionTo } from './objection.js'
import { parseLimit } from './parse-limit.js'
import { readMap } from './read-map.js'

const SAMPLE = slidingWindowLog({ limit: 1, window: '1m' })

/** The `policies` of a file by name, or null after saying that they are none. Left out: no policies. */
export function parsePolicies(value: unknown, report: Report): ReadonlyMap<string, PolicyOptions> | null {
  const policies = new Map<string, PolicyOptions>()
  if (value === undefined) return policies
  const named = readMap(value, ['policies'], report)
  if (named === null) return null
  for (const [name, limits] of named) {
    const path = ['policies', name]
    const objection = objectionTo(() => createLimiter({ policies: { [name]: SAMPLE } }))
    if (objection !== null) report(path, objection, 'key')
    policies.set(name, parseLimits(limits, path, report))
  }
  return policies
}

/** A single limit may stand for a list of one, as in the library. */
function parseLimits(value: unknown, path: Path, report: Report): readonly Limit[] {
  if (value instanceof Map) return [parseLimit(value, path, report)].filter(limit => limit !== null)
  if (!Array.isArray(value) || value.length === 0) {
    report(path, `expected a list of limits; got ${describeValue(value)}`)
    return []
  }
  const limits: Limit[] = []
  const ids = new Set<string>()
  for (const [index, item] of value.entries()) {
    const limit = parseLimit(item, [...path, index], report)
    if (limit === null) continue
    if (ids.has(limit.id)) {
      report(
        [...path, index],
        `expected a limit unlike those above it, or a name for it; got "${limit.id}" again`,
      )
    }
    ids.add(limit.id)
    limits.push(limit)
  }
  return limits
}
