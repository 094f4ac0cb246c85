/**
 * What a policy file brings to a limiter: it carries this object, as a limit carries its algorithm, so that a program
 * without a policy file does not bundle the resolving of rules.
 */
import type { Check } from '../check/check.js'
import { invalidOption } from '../errors/headgate-error.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { Identify } from '../subject/identify.js'
import { addressOptionsOf, identifyBySources } from '../subject/identify-by-sources.js'
import { perAddressOf, typesOf } from '../subject/source-config.js'
import { ip } from '../subject/sources.js'
import { type SubjectInput, typeOf } from '../subject/subject.js'
import { type ActiveConfig, activateConfig } from './active-config.js'
import type { AtRunTime } from './active-policies.js'
import { AppliedLevel } from './applied-level.js'
import { applyLevel } from './apply-level.js'
import { askedLevel, ofCaller } from './asked-level.js'
import { statesOf } from './checks-of.js'
import { type CompiledConfig, compileConfig } from './compiled-config.js'
import { concernedBy, isAbout } from './concerned-by.js'
import type { Config } from './config.js'
import { type Explanation, explain } from './explanation.js'
import { rejectMovedFleet, rejectOtherFleet, versionOf } from './file-identity.js'
import { askedBy, besideLevel, callerLevel, findCaller, globalLevel, routeLevel } from './find-levels.js'
import type { Ipv6Budgets } from './ipv6-budgets.js'
import type { OverrideTarget } from './override.js'
import type { Concerned } from './override-effect.js'
import type { RequestFacts } from './request-facts.js'
import { RuleResolver, type RuleResolverOptions } from './rule-resolver.js'

/** A state that the file keeps about a subject. */
export interface KeptState {
  /** The rule's name, the part of the file, or `asked` for a policy that is asked by name. */
  readonly rule: string
  readonly check: Check
  /** Whether it is shown even if nothing of it has been used. */
  readonly isExpected: boolean
}

/** Whom to look for, and where. */
export interface StatesQuery {
  /** The tier that a session or a key tells. */
  readonly tier: string | null
  /** The scope in which policies are asked by name. */
  readonly scope: string
}

export interface Rules {
  compile: typeof compileConfig
  activate(compiled: CompiledConfig, atRunTime: AtRunTime): ActiveConfig
  resolver(options: RuleResolverOptions): RuleResolver
  explain(resolver: RuleResolver, facts: RequestFacts, budgets: Ipv6Budgets): Explanation
  rejectMovedFleet: typeof rejectMovedFleet
  rejectOtherFleet: typeof rejectOtherFleet
  versionOf: typeof versionOf
  callers(inForce: () => Config): FileCallers & { rejectUnusable(next: Config): void }
  /** The tier of a subject by the file and the overrides. */
  tierOf(active: ActiveConfig, subject: string, tier: string | null, nowUs: number): string | null
  /** Finds whose limits the override of a target replaces. */
  concernedBy(active: ActiveConfig, target: OverrideTarget, nowUs: number): Concerned
  /** Each state once, under the first that mentions it: the caller's own, then the rules in file order. */
  statesAbout(active: ActiveConfig, subject: string, query: StatesQuery, nowUs: number): KeptState[]
}

export const rules: Rules = {
  compile: compileConfig,
  activate: activateConfig,
  resolver: options => new RuleResolver(options),
  explain: (resolver, facts, budgets) => explain(resolver.resolution(facts), budgets),
  rejectMovedFleet,
  rejectOtherFleet,
  versionOf,
  callers: createFileCallers,
  tierOf: (active, subject, tier, nowUs) => findCaller(active, { subjects: [subject], tier }, nowUs).tier,
  concernedBy,
  statesAbout,
}

function statesAbout(
  active: ActiveConfig,
  subject: string,
  { tier, scope }: StatesQuery,
  nowUs: number,
): KeptState[] {
  const subjects = [subject]
  const caller = findCaller(active, { subjects, tier }, nowUs)
  const type = typeOf(subject)
  const { rules: written } = active.config
  const global = globalLevel(active, nowUs)
  const levels = [
    callerLevel(active, askedBy({ subjects, scope: null }, caller.tier), caller, nowUs),
    ...written
      .filter(rule => isAbout(rule, type, caller.tier))
      .map(rule => routeLevel(active, rule, caller, nowUs)),
    ...(global === null ? [] : [global]),
  ].map(level => applyLevel(level, subjects))
  const named = [...active.policies.keys()].map(
    policy => new AppliedLevel(askedLevel(active, { subject, charge: { policy }, scope }, nowUs), subject),
  )
  return [
    ...levels.flatMap(level => [
      ...statesIn(level, true),
      ...level.meters.flatMap(metered => statesIn(metered.level, true)),
    ]),
    ...alsoCharged(active, subject, type, nowUs),
    ...(type === 'ip' ? chargedForMinted(active, subject, nowUs) : []),
    ...named.flatMap(level => statesIn(level, false)),
  ]
}

/** The states of a level. */
function statesIn(level: AppliedLevel, isExpected: boolean): KeptState[] {
  return statesOf(level).map(check => ({ rule: level.level.rule, check: { ...check, cost: 1 }, isExpected }))
}

/** Rules that charge it beside another subject. */
function alsoCharged(active: ActiveConfig, subject: string, type: string, nowUs: number): KeptState[] {
  return active.config.rules.flatMap(({ name: rule, scope, also = [] }) =>
    also
      .filter(other => other.subject === type)
      .flatMap(
        ({ policy }) =>
          besideLevel(active, ofCaller(rule), policy, [subject], nowUs).configured.policy.limits,
      )
      .map(({ name, limit }) => ({
        rule,
        check: { subject, scope, name, limit, cost: 1 },
        isExpected: true,
      })),
  )
}

/** What an address pays for the subjects that anybody can make up. */
function chargedForMinted(active: ActiveConfig, address: string, nowUs: number): KeptState[] {
  const { identify, rules: written } = active.config
  return (identify ?? []).flatMap(source => {
    const times = perAddressOf(source)
    if (times === null || times === 'off') return []
    const [type = ''] = typesOf(source)
    const subjects = [`${type}:`]
    const tier = 'tier' in source ? (source.tier ?? null) : null
    const caller = findCaller(active, { subjects, tier }, nowUs)
    const levels = [
      callerLevel(active, askedBy({ subjects, scope: null }, caller.tier), caller, nowUs),
      ...written
        .filter(rule => rule.per === 'caller' && isAbout(rule, type, caller.tier))
        .map(rule => routeLevel(active, rule, caller, nowUs)),
    ]
    return levels.flatMap(({ rule, scope, configured }) =>
      configured.times(times).policy.limits.map(({ name, limit }) => ({
        rule,
        check: { subject: address, scope, name, limit, cost: 1 },
        isExpected: false,
      })),
    )
  })
}

/** Identifies callers by the policy file in force. */
interface FileCallers {
  /**
   * Identifies the caller by `identify`, `subjects` and `trustedProxies` of the file in force. Adapters use it
   * unless their options identify callers. Throws on access for a file that verifies tokens.
   */
  readonly identify: Identify
  /** Returns the client's address by `trustedProxies` of the file in force, as the subject that is charged. */
  addressOf(request: HttpRequest): SubjectInput
}

/** Creates the sources of a file on first use, so that a limiter whose subjects are passed in needs none. */
function createFileCallers(inForce: () => Config) {
  let address: { readonly config: Config; readonly source: ReturnType<typeof ip> } | null = null
  let made: { readonly config: Config; readonly identify: Identify } | null = null
  function current(): Identify {
    const config = inForce()
    if (made?.config !== config) made = { config, identify: identifyBySources(config, rejectTokens) }
    return made.identify
  }
  const ask = (...asked: Parameters<Identify>) => current()(...asked)
  const identify: Identify = Object.assign(ask, { ready: async () => current().ready() })
  return {
    get identify() {
      current()
      return identify
    },
    addressOf(request: HttpRequest): SubjectInput {
      const config = inForce()
      if (address?.config !== config) address = { config, source: ip(addressOptionsOf(config)) }
      return address.source.find(request).subject
    },
    /** Throws for a file whose sources cannot be created, if they are in use. */
    rejectUnusable(next: Config): void {
      if (made !== null) identifyBySources(next, rejectTokens)
    },
  }
}

/** Verifying tokens needs a package that an app which bundles a limiter may not have. */
function rejectTokens(): never {
  const expected =
    'identifyByConfig(config) of headgate/identify beside the limiter, whose file verifies tokens'
  throw invalidOption('identify', expected, undefined)
}
