import { withoutWindowWarning } from '../algorithms/durations.js'
import type { Config } from '../policy/config.js'
import { DEFAULT_TIERS } from '../policy/tier-numbers.js'
import { findDoubts, findMistakes, isWrittenIn } from './checks.js'
import type { Warn } from './config-error.js'
import { policyFile } from './file/policy-file.js'
import { withReadyPolicies } from './ready-policies.js'
import { partsOf, peekMap } from './shape/maps.js'
import { type Names, Place, type Report } from './shape/shape.js'
import { toConfig } from './to-config.js'

/** Reads the values of a policy file: each part by its shape, then what the parts are together. Returns null after reporting every mistake. */
export function readConfig(written: unknown, report: Report, warn: Warn | null = null): Config | null {
  const names = namesIn(written)
  const top = Place.top(names, report)
  const read = () => partsOf(policyFile).read(written, top) ?? {}
  const file = withReadyPolicies(warn === null ? read() : withoutWindowWarning(read), (rule, field) =>
    isWrittenIn(written, rule, field),
  )
  findMistakes({ file, written, names }, top)
  if (top.mistakes > 0) return null
  if (warn !== null) findDoubts({ file, written, names }, warn)
  return toConfig(file)
}

/** Collects the names before anything is read, so that every part may refer to them. */
function namesIn(value: unknown): Names {
  const fields = peekMap(value)
  const given = fields?.get('tiers')
  const tiers = given === undefined || given === 'default' ? Object.keys(DEFAULT_TIERS) : keysOf(given)
  const policies = fields?.has('policies') ? keysOf(fields.get('policies')) : []
  return { tiers: tiers && new Set(tiers), policies: policies && new Set(policies) }
}

function keysOf(value: unknown): Iterable<string> | null {
  return peekMap(value)?.keys() ?? null
}
