import { withoutWindowWarning } from '../algorithms/durations.js'
import type { Config } from '../policy/config.js'
import { defaultTiers } from '../policy/tiers.js'
import type { Warn } from './config-error.js'
import { findContradictions } from './contradictions.js'
import { policyFile } from './file/policy-file.js'
import { findInternalOfProxy } from './internal-of-proxy.js'
import { findNeverEffective } from './never-effective.js'
import { peekMap } from './shape/maps.js'
import { type Names, Place, type Report } from './shape/shape.js'
import { ANONYMOUS, toConfig } from './to-config.js'
import { findUnreachableSubjects } from './unreachable-subjects.js'
import { findWindowsInMilliseconds } from './windows-in-milliseconds.js'

/**
 * Reads the values of a policy file and reports every mistake in them. If there was one, neither the result nor the
 * warnings mean anything.
 */
export function readConfig(value: unknown, report: Report, warn: Warn | null = null): Config {
  const top = new Place([], namesIn(value), report)
  const read = () => policyFile.read(value, top) ?? {}
  const file = warn === null ? read() : withoutWindowWarning(read)
  if (
    file.default === undefined &&
    top.names.tiers?.has(ANONYMOUS) === false &&
    !peekMap(value)?.has('default')
  ) {
    const expected = `a tier or a policy, since there is no tier ${ANONYMOUS}`
    top.below('default').refuse({ expected, got: 'nothing' })
  }
  findContradictions(file, top)
  findUnreachableSubjects(file, top)
  if (warn !== null) {
    findNeverEffective(file, value, warn)
    findInternalOfProxy(file, warn)
    findWindowsInMilliseconds(value, warn)
  }
  return toConfig(file)
}

/** Collects the names before anything is read, so that every part may refer to them. */
function namesIn(value: unknown): Names {
  const fields = peekMap(value)
  const given = fields?.get('tiers')
  const tiers = given === undefined || given === 'default' ? Object.keys(defaultTiers) : keysOf(given)
  const policies = fields?.has('policies') ? keysOf(fields.get('policies')) : []
  return { tiers: tiers && new Set(tiers), policies: policies && new Set(policies) }
}

function keysOf(value: unknown): Iterable<string> | null {
  return peekMap(value)?.keys() ?? null
}
