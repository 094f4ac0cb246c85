import { doubtOfWindow, WINDOW_IN_SECONDS, withoutWindowWarning } from '../algorithms/durations.js'
import type { Config } from '../policy/config.js'
import { defaultTiers } from '../policy/tiers.js'
import type { TrustedProxies } from '../subject/client-address.js'
import { overlaps, parseNetwork } from '../subject/network.js'
import { typesOf } from '../subject/source-config.js'
import { foldType } from '../subject/subject.js'
import type { Path, Warn } from './config-error.js'
import { findContradictions } from './contradictions.js'
import { policyFile, type ReadFile } from './file/policy-file.js'
import { findNeverEffective } from './never-effective.js'
import { sound } from './shape/lists.js'
import { peekMap } from './shape/maps.js'
import { type Names, Place, type Report } from './shape/shape.js'
import { ANONYMOUS, toConfig } from './to-config.js'

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
    top.below('default').reject({ expected, got: 'nothing' })
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

/**
 * Finds sources of type `internal` that believe addresses of trusted proxies. A proxy that does not name its client
 * would lend its own address to whoever it forwards for, and one in a network that anybody may claim is no proof.
 */

function findInternalOfProxy(file: ReadFile, warn: Warn): void {
  const { trustedProxies } = file
  if (trustedProxies === undefined) return
  for (const [index, source] of (file.identify ?? []).entries()) {
    if (source?.source !== 'internal' || source.from === 'everybody') continue
    const shared = source.from.find(network => isProxy(network, trustedProxies))
    if (shared === undefined) continue
    warn(
      ['identify', index, 'internal', 'from'],
      'WARN_HEADGATE_INTERNAL_OF_PROXY',
      `${shared} is also in trustedProxies: a client behind a proxy that does not name it would be one of your services; list the addresses of the services alone`,
    )
  }
}

function isProxy(network: string, trustedProxies: TrustedProxies): boolean {
  if (trustedProxies === 'everybody') return true
  if (!Array.isArray(trustedProxies)) return false
  const believed = parseNetwork(network)
  return trustedProxies.some((proxy: string) => overlaps(believed, parseNetwork(proxy)))
}

/** Reports callers and rules with a type that no source of `identify` finds: they would never match. */

function findUnreachableSubjects(file: ReadFile, top: Place): void {
  // An invalid source may have been meant to find any type.
  if (file.identify === undefined || file.identify.includes(undefined)) return
  const types = new Set(sound(file.identify).flatMap(typesOf).map(foldType))
  const expected = `a type that identify finds (${[...types].join(', ')})`
  const isFound = (type: string): boolean => types.has(foldType(type))
  for (const subject of file.subjects?.keys() ?? []) {
    const type = subject.slice(0, subject.indexOf(':'))
    if (!isFound(type))
      top
        .below('subjects')
        .below(subject)
        .reject({ expected, got: `one of type ${type}` }, 'key')
  }
  for (const [index, rule] of (file.rules ?? []).entries()) {
    const place = top.below('rules').below(index)
    const named = sound(rule?.match?.subject)
    if (named.length > 0 && !named.some(isFound)) {
      place
        .below('match')
        .below('subject')
        .reject({ expected, got: named.join(', ') })
    }
    for (const [number, { subject } = {}] of (rule?.also ?? []).entries()) {
      if (subject === undefined || isFound(subject)) continue
      place.below('also').below(number).below('subject').reject({ expected, got: subject })
    }
  }
}

/** Warns about every window in a file that looks like milliseconds. `value` is the file before it was read. */
function findWindowsInMilliseconds(value: unknown, warn: Warn): void {
  for (const [name, policy] of peekMap(peekMap(value)?.get('policies')) ?? []) {
    warnOfWindows(policy, ['policies', name], warn)
  }
}

/** A policy is a limit, a list of limits, or a map that contains such lists. */
function warnOfWindows(value: unknown, path: Path, warn: Warn): void {
  if (Array.isArray(value)) {
    for (const [index, limit] of value.entries()) warnOfWindows(limit, [...path, index], warn)
    return
  }
  const fields = peekMap(value)
  if (fields === null) return
  const doubt = doubtOfWindow(fields.get('window'))
  if (doubt !== null) warn([...path, 'window'], WINDOW_IN_SECONDS, doubt)
  for (const key of ['limits', 'candidate']) warnOfWindows(fields.get(key), [...path, key], warn)
}
