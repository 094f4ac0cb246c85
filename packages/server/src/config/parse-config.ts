import type { PolicyOptions, TierOptions } from 'headgate'
import { describeValue } from '../wording/describe-value.js'
import { suggestion } from '../wording/nearest-name.js'
import { ConfigError, type ConfigProblem, formatPath, type Report } from './config-problem.js'
import { parsePolicies } from './parse-policies.js'
import { parseTiers } from './parse-tiers.js'
import { parseUpstream, type Upstream } from './parse-upstream.js'
import { readFields } from './read-map.js'
import { readYaml } from './read-yaml.js'

/** Which limits a request without any more special rule is charged to. */
export type DefaultRule = { readonly tier: string } | { readonly policy: string }

/** A policy file, checked. */
export interface Config {
  readonly tiers: Readonly<Record<string, TierOptions>>
  readonly policies: Readonly<Record<string, PolicyOptions>>
  readonly default: DefaultRule
  readonly upstream: Upstream | null
}

/** What the file defines; null where it cannot be told, so that one mistake is not reported as two. */
interface Names {
  readonly tiers: ReadonlyMap<string, unknown> | null
  readonly policies: ReadonlyMap<string, unknown> | null
}

const FIELDS = ['tiers', 'policies', 'default', 'upstream']
const ANONYMOUS = 'anonymous'
const MAX_LISTED = 50

/** Reads the text of a policy file. Throws a `ConfigError` with every mistake in it. */
export function parseConfig(text: string, file: string): Config {
  const yaml = readYaml(text)
  if (yaml.problems.length > 0) throw new ConfigError(file, yaml.problems)
  const problems: ConfigProblem[] = []
  let unlisted = 0
  const report: Report = (path, message, at = 'value') => {
    // Finding a place takes a walk from the top; a file of nothing but mistakes must not take one for each.
    if (problems.length === MAX_LISTED) unlisted++
    else problems.push({ ...yaml.locate(path, at), path: formatPath(path), message })
  }
  const fields = readFields(yaml.value, FIELDS, { path: [], report })
  const tiers = parseTiers(fields?.get('tiers'), report)
  const policies = parsePolicies(fields?.get('policies'), report)
  const rule = parseDefault(fields?.get('default'), { tiers, policies }, report)
  const upstream = fields?.has('upstream') ? parseUpstream(fields.get('upstream'), report) : null
  if (problems.length > 0) throw new ConfigError(file, inOrder(problems), unlisted)
  return {
    tiers: Object.fromEntries(tiers ?? []),
    policies: Object.fromEntries(policies ?? []),
    default: rule,
    upstream,
  }
}

/** What applies without a file: the default tiers, every address anonymous. */
export const builtInConfig: Config = parseConfig('tiers: default', 'built-in')

function parseDefault(value: unknown, names: Names, report: Report): DefaultRule {
  const path = ['default']
  if (value === undefined) {
    if (names.tiers?.has(ANONYMOUS) === false) {
      report(path, `expected a tier or a policy, since there is no tier ${ANONYMOUS}; got nothing`)
    }
    return { tier: ANONYMOUS }
  }
  const fields = readFields(value, ['tier', 'policy'], { path, report })
  const tier = fields?.get('tier')
  const policy = fields?.get('policy')
  if (fields !== null && fields.has('tier') === fields.has('policy')) {
    report(path, `expected either a tier or a policy; got ${fields.has('tier') ? 'both' : 'neither'}`)
  } else if (fields?.has('tier')) {
    checkName(tier, names.tiers, message => report([...path, 'tier'], message))
  } else if (fields?.has('policy')) {
    checkName(policy, names.policies, message => report([...path, 'policy'], message))
  }
  return policy === undefined ? { tier: String(tier) } : { policy: String(policy) }
}

function checkName(
  name: unknown,
  known: ReadonlyMap<string, unknown> | null,
  report: (message: string) => void,
): void {
  if (known === null || (typeof name === 'string' && known.has(name))) return
  const names = [...known.keys()]
  const expected = names.length === 0 ? 'one that the file defines' : `one of ${names.join(', ')}`
  const hint = typeof name === 'string' ? suggestion(name, names) : ''
  report(`expected ${expected}; got ${describeValue(name)}${hint}`)
}

function inOrder(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column)
}
