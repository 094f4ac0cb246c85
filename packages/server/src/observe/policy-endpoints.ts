/** The policy file in force, with what its rules did in the last hour; and a file on trial. Nothing is changed here. */
import type { Config, Limit, RequestFacts } from 'headgate'
import type { ArrivalSample, MatchConfig, PolicyOrTier, RuleConfig } from 'headgate/internal'
import { bad } from '../admin/body-fields.js'
import { administers, type Endpoint, RequestError, reads } from '../admin/endpoint.js'
import { readFields } from '../admin/read-body.js'
import { jsonAnswer } from '../http/problem.js'
import type { ShownFleet } from './fleet.js'
import type { Stats } from './stats.js'

/** The text of the policy file, as it is on disk. */
export interface PolicyText {
  readonly fileName: string
  readonly text: string
}

export interface ShownPolicy {
  readonly version: string
  readonly loadedAtMs: number
  /** `stale`: the file has changed into one that cannot be used. */
  readonly state: 'current' | 'stale'
  readonly levels: string
  readonly mode: string
  /** What callers are charged to that nothing else covers. */
  readonly default: string
  readonly tiers: readonly { readonly name: string; readonly numbers: Readonly<Record<string, unknown>> }[]
  readonly policies: readonly ShownLimits[]
  /** In the order in which they are matched. */
  readonly rules: readonly ShownRule[]
  /** The Unix time in milliseconds since when requests were counted: an hour ago, or later. */
  readonly countedSinceMs: number
  /** Requests that no rule decided, by the part of the file that did. */
  readonly withoutRule: readonly {
    readonly name: string
    readonly decided: number
    readonly denied: number
  }[]
  /** Who runs which version of a file. */
  readonly versions: readonly {
    readonly version: string | null
    readonly processes: number
    readonly services: readonly string[]
  }[]
}

export interface ShownLimits {
  readonly name: string
  readonly limits: readonly string[]
  readonly candidate: readonly string[]
  readonly mode: string
}

export interface ShownRule {
  readonly name: string
  readonly match: string
  readonly charges: string
  readonly limits: readonly string[]
  readonly mode: string
  readonly decided: number
  readonly denied: number
}

export interface PolicyEndpointsOptions {
  readonly stats: Stats
  config(): Config
  /** Null if there is no file. */
  policyText(): Promise<PolicyText | null>
  arrivals(): Promise<ArrivalSample>
}

/** JSON may take more bytes than the text. */
const MAX_BODY_BYTES = 1_500_000

export function policyEndpoints(options: PolicyEndpointsOptions): readonly Endpoint[] {
  const { stats, config, arrivals } = options
  let isTrying = false

  function shownPolicy(): ShownPolicy {
    const { config: state } = stats.snapshot()
    const { sinceMs, byRule } = stats.rulesOfLastHour()
    const inForce = config()
    const rules = inForce.rules.map(rule => ({
      ...shownRule(rule, inForce),
      ...countsOf(byRule.get(rule.name)),
    }))
    const named = new Set(inForce.rules.map(({ name }) => name))
    return {
      version: state.version,
      loadedAtMs: state.loadedAtMs,
      state: state.state,
      levels: inForce.levels,
      mode: inForce.mode,
      default: chargeWords(inForce.default),
      tiers: Object.entries(inForce.tiers).map(([name, numbers]) => ({ name, numbers: { ...numbers } })),
      policies: Object.entries(inForce.policies).map(([name, { limits, candidate = [], mode }]) => ({
        name,
        limits: limits.map(limitWords),
        candidate: candidate.map(limitWords),
        mode: mode ?? inForce.mode,
      })),
      rules,
      countedSinceMs: sinceMs,
      withoutRule: [...byRule].flatMap(([name, counts]) => (named.has(name) ? [] : [{ name, ...counts }])),
      versions: versionsOf(stats.fleet()),
    }
  }

  return [
    { path: '/v1/policy', methods: { GET: reads(() => jsonAnswer(200, shownPolicy())) } },
    {
      // Its subjects may be keys: only for those who could change it.
      path: '/v1/policy/text',
      methods: {
        GET: administers(async () => {
          const found = await options.policyText()
          if (found !== null) return jsonAnswer(200, found)
          throw new RequestError(404, { field: 'policy', expected: 'a policy file', got: 'none' })
        }),
      },
    },
    {
      path: '/v1/policy/try',
      methods: {
        POST: reads(async req => {
          const fields = await readFields(req, ['text', 'fileName', 'request'], MAX_BODY_BYTES)
          const { text, fileName = 'headgate.yaml', request = null } = fields
          if (typeof text !== 'string') throw bad('text', 'the text of a policy file', text)
          if (typeof fileName !== 'string') throw bad('fileName', 'a string', fileName)
          if (isTrying) {
            throw new RequestError(503, { field: 'text', expected: 'one file at a time', got: 'another' })
          }
          isTrying = true
          try {
            const show = (subject: string) => stats.show(subject)
            const asked = { text, fileName, request: request as RequestFacts | null, arrivals, show }
            // Loaded on demand: it brings the simulation along, and most processes never try a policy.
            const { tryPolicy } = await import('./try-policy.js')
            return jsonAnswer(200, await tryPolicy({ ...asked, inForce: config() }))
          } finally {
            isTrying = false
          }
        }),
      },
    },
  ]
}

function shownRule(rule: RuleConfig, { policies, mode }: Config) {
  const { name, match, charge, per } = rule
  const policy = charge?.policy === undefined ? undefined : policies[charge.policy]
  return {
    name,
    match: matchWords(match),
    charges: `${charge === null ? "the caller's tier" : chargeWords(charge)}${per === 'everyone' ? ', shared by all' : ''}`,
    limits: (policy?.limits ?? []).map(limitWords),
    mode: rule.mode ?? policy?.mode ?? mode,
  }
}

function countsOf(counts: { readonly decided: number; readonly denied: number } | undefined) {
  return counts ?? { decided: 0, denied: 0 }
}

function limitWords(limit: Limit): string {
  return limit.algorithm.describe(limit)
}

function chargeWords({ tier, policy }: PolicyOrTier): string {
  return tier === undefined ? `policy ${policy}` : `tier ${tier}`
}

/** `POST /login`, or what else has to hold. */
function matchWords({ methods, path, subjects, tiers, scopes }: MatchConfig): string {
  const route = [methods?.join(', '), path].filter(Boolean).join(' ')
  const others = [
    ['subject', subjects],
    ['tier', tiers],
    ['scope', scopes],
  ].flatMap(([name, values]) =>
    values === null ? [] : [`${name} ${(values as readonly string[]).join(', ')}`],
  )
  return [...(route === '' ? [] : [route]), ...others].join('; ') || 'every request'
}

function versionsOf({ processes }: ShownFleet): ShownPolicy['versions'] {
  const found = new Map<string | null, { processes: number; services: Set<string> }>()
  for (const { configVersion, service } of processes) {
    const one = found.get(configVersion) ?? { processes: 0, services: new Set() }
    one.processes++
    if (service !== '') one.services.add(service)
    found.set(configVersion, one)
  }
  return [...found].map(([version, one]) => ({
    version,
    processes: one.processes,
    services: [...one.services],
  }))
}
