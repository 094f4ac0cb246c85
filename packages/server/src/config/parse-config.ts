import type { PolicyOptions, TierOptions } from 'headgate'
import { ConfigError, type ConfigProblem, formatPath, type Report } from './config-problem.js'
import { describeValue } from './describe-value.js'
import { suggestion } from './nearest-name.js'
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

interface Names {
  readonly tiers: ReadonlyMap<string, unknown>
  readonly policies: ReadonlyMap<string, unknown>
}

const FIELDS = ['tiers', 'policies', 'default', 'upstream']
const ANONYMOUS = 'anonymous'

/** Reads the text of a policy file. Throws a `ConfigError` with every mistake in it. */
export function parseConfig(text: string, file: string): Config {
  const yaml = readYaml(text)
  if (yaml.problems.length > 0) throw new ConfigError(file, yaml.problems)
  const problems: ConfigProblem[] = []
  const report: Report = (path, message, at = 'value') => {
    problems.push({ ...yaml.locate(path, at), path: formatPath(path), message })
  }
  const fields = readFields(yaml.value, FIELDS, { path: [], report })
  const tiers = parseTiers(fields?.get('tiers'), report)
  const policies = parsePolicies(fields?.get('policies'), report)
  const rule = parseDefault(fields?.get('default'), { tiers, policies }, report)
  const upstream = fields?.has('upstream') ? parseUpstream(fields.get('upstream'), report) : null
  if (problems.length > 0) throw new ConfigError(file, inOrder(problems))
  return { tiers: Object.fromEntries(tiers), policies: Object.fromEntries(policies), default: rule, upstream }
}

/** What applies without a file: the default tiers, every address anonymous. */
export const builtInConfig: Config = parseConfig('tiers: default', 'built-in')

function parseDefault(value: unknown, names: Names, report: Report): DefaultRule {
  const path = ['default']
  const given = value === undefined ? new Map([['tier', ANONYMOUS]]) : value
  const fields = readFields(given, ['tier', 'policy'], { path, report })
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
  known: ReadonlyMap<string, unknown>,
  report: (message: string) => void,
): void {
  if (typeof name === 'string' && known.has(name)) return
  const names = [...known.keys()]
  const expected = names.length === 0 ? 'one that the file defines' : `one of ${names.join(', ')}`
  const hint = typeof name === 'string' ? suggestion(name, names) : ''
  report(`expected ${expected}; got ${describeValue(name)}${hint}`)
}

function inOrder(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column)
}
