/**
 * Everything the policy file keeps about a subject: which limits, how much of each is left, and where it is stored.
 */

import { toMs, toWaitMs } from '../decision/verdicts.js'
import { type Check, type Question, stateOf, type Verdict } from '../engine/question.js'
import { HeadgateError } from '../errors/headgate-error.js'
import { printable } from '../errors/shown-text.js'
import type { ActiveConfig } from '../policy/active-config.js'
import { AppliedLevel } from '../policy/applied-level.js'
import type { RuleConfig } from '../policy/config.js'
import {
  askedBy,
  askedLevel,
  callerLevel,
  findCaller,
  globalLevel,
  routeLevel,
} from '../policy/find-levels.js'
import type { Ipv6Budgets } from '../policy/ipv6-budgets.js'
import { statesOf } from '../policy/question-of.js'
import { promiseAnswer, type Stage } from '../store/stage.js'
import { redisKey } from '../subject/key.js'
import { perAddressOf, typesOf } from '../subject/source-config.js'
import { typeOf } from '../subject/subject-type.js'

export interface Inspection {
  /** The name in the store: without secrets. */
  readonly subject: string
  readonly tier: string | null
  readonly limits: readonly InspectedLimit[]
  /** Whether there are more limits than were looked at. */
  readonly truncated: boolean
  /** The same in words, one line each. */
  readonly text: string
}

export interface InspectedLimit {
  /** The rule's name, the part of the file, or `asked` for a policy that is asked by name. */
  readonly rule: string
  /** `<policy>.<limit>`. */
  readonly name: string
  readonly scope: string
  /** Whose budget it is: the subject's, everybody's, or that of a network around it. */
  readonly subject: string
  readonly algorithm: string
  readonly limit: number
  readonly used: number
  readonly remaining: number
  /** Until a unit is free: 0 now, null never. */
  readonly retryAfterMs: number | null
  /** Until all of it is free. */
  readonly resetAfterMs: number
  /** The key in Redis; null without Redis. */
  readonly key: string | null
  readonly text: string
}

export interface InspectOptions<TierName extends string = string> {
  /** The subject's tier, if a session or a key tells it; the file takes precedence. */
  readonly tier?: TierName
  /** A further scope in which policies are asked by name. */
  readonly scope?: string
}

/** The tools of an inspection. */
export interface Inspector {
  readonly active: ActiveConfig
  readonly budgets: Ipv6Budgets
  readonly stage: Stage
  readonly nowUs: number
  /** The prefix and tenant of the keys, if the store has any. */
  readonly fleet: { readonly prefix: string; readonly tenant: string } | undefined
}

interface State {
  readonly rule: string
  readonly check: Check
  /** Whether it is shown even if nothing of it has been used. */
  readonly isExpected: boolean
}

const MAX_STATES = 1_000
/** How many are asked at once. */
const SLICE = 100

export async function inspect(
  inspector: Inspector,
  subject: string,
  { tier, scope }: InspectOptions,
): Promise<Inspection> {
  const { active, nowUs } = inspector
  const caller = findCaller(active, { subjects: [subject], tier: tier ?? null }, nowUs)
  const states = statesAbout(inspector, subject, { tier: tier ?? null, scope: scope ?? 'global' })
  const looked = states.slice(0, MAX_STATES)
  const limits: InspectedLimit[] = []
  for (let from = 0; from < looked.length; from += SLICE) {
    limits.push(...(await look(inspector, looked.slice(from, from + SLICE))))
  }
  const head = `${subject}: tier ${caller.tier ?? 'none'}`
  return {
    subject,
    tier: caller.tier,
    limits,
    truncated: states.length > MAX_STATES,
    text: [head, ...limits.map(({ text }) => text)].map(printable).join('\n'),
  }
}

/** Returns the states that belong to a subject alone, without those it shares with others. */
export function ownStates(inspector: Pick<Inspector, 'active' | 'nowUs'>, subject: string): Check[] {
  return statesAbout(inspector, subject, { tier: null, scope: 'global' })
    .map(({ check }) => check)
    .filter(check => check.subject === subject)
}

/** Each state once, under the first that mentions it: the caller's own, then the rules in file order. */
function statesAbout(
  { active, nowUs }: Pick<Inspector, 'active' | 'nowUs'>,
  subject: string,
  { tier, scope }: { readonly tier: string | null; readonly scope: string },
): State[] {
  const subjects = [subject]
  const caller = findCaller(active, { subjects, tier }, nowUs)
  const type = typeOf(subject)
  const { rules } = active.config
  const global = globalLevel(active)
  const levels = [
    callerLevel(active, askedBy({ subjects, scope: null }, caller.tier), caller, nowUs),
    ...rules
      .filter(rule => isAbout(rule, type, caller.tier))
      .map(rule => routeLevel(active, rule, caller, nowUs)),
    ...(global === null ? [] : [global]),
  ].map(level => new AppliedLevel(level, subjects))
  const named = [...active.policies.keys()].map(
    policy => new AppliedLevel(askedLevel(active, { subject, charge: { policy }, scope }, nowUs), subjects),
  )
  return withoutRepeats([
    ...levels.flatMap(level => statesIn(level, true)),
    ...alsoCharged(active, rules, subject, type),
    ...(type === 'ip' ? chargedForMinted(active, subject, nowUs) : []),
    ...named.flatMap(level => statesIn(level, false)),
  ])
}

function statesIn(level: AppliedLevel, isExpected: boolean): State[] {
  return statesOf(level).map(check => ({ rule: level.level.rule, check: { ...check, cost: 1 }, isExpected }))
}

/** Rules that charge it beside another subject. */
function alsoCharged(
  { configuredPolicies }: ActiveConfig,
  rules: readonly RuleConfig[],
  subject: string,
  type: string,
): State[] {
  return rules.flatMap(({ name: rule, scope, also = [] }) =>
    also
      .filter(other => other.subject === type)
      .flatMap(({ policy }) => configuredPolicies.get(policy)?.policy.limits ?? [])
      .map(({ name, limit }) => ({
        rule,
        check: { subject, scope, name, limit, cost: 1 },
        isExpected: true,
      })),
  )
}

/** What an address pays for the subjects that anybody can make up. */
function chargedForMinted(active: ActiveConfig, address: string, nowUs: number): State[] {
  const { identify, rules } = active.config
  return (identify ?? []).flatMap(source => {
    const times = perAddressOf(source)
    if (times === null || times === 'off') return []
    const [type = ''] = typesOf(source)
    const subjects = [`${type}:`]
    const tier = 'tier' in source ? (source.tier ?? null) : null
    const caller = findCaller(active, { subjects, tier }, nowUs)
    const levels = [
      callerLevel(active, askedBy({ subjects, scope: null }, caller.tier), caller, nowUs),
      ...rules
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

function isAbout({ match }: RuleConfig, type: string, tier: string | null): boolean {
  if (match.subjects !== null && !match.subjects.includes(type)) return false
  return match.tiers === null || (tier !== null && match.tiers.includes(tier))
}

function withoutRepeats(states: readonly State[]): State[] {
  const byState = new Map<string, State>()
  for (const state of states) {
    const key = stateOf(state.check)
    if (!byState.has(key)) byState.set(key, state)
  }
  return [...byState.values()]
}

async function look(
  { stage, budgets, fleet }: Inspector,
  states: readonly State[],
): Promise<readonly InspectedLimit[]> {
  const known = new Map(states.map(state => [inScope(state.check), state]))
  const question: Question = budgets.widen({ alternatives: [states.map(({ check }) => check)], shadow: [] })
  const { source, verdicts } = await promiseAnswer(stage, 'peek', question)
  // A guess of this process is no answer to somebody who wants to know what is stored.
  if (source !== undefined) {
    throw new HeadgateError('ERR_HEADGATE_STORE_UNAVAILABLE', {
      field: 'store',
      expected: 'an answer',
      got: 'none',
    })
  }
  const checks = question.alternatives[0] ?? []
  return checks.flatMap((check, index) => {
    const verdict = verdicts[0]?.[index] as Verdict
    const { rule, isExpected } = known.get(inScope(check)) as State
    const key = fleet === undefined ? null : redisKey({ ...fleet, ...check })
    const isShown = isExpected || verdict.remaining < check.limit.limit
    return isShown ? [inspected(rule, check, verdict, key)] : []
  })
}

/** The same scope for a caller and for the networks around it, whose limits are named `<name>/<bits>`. */
function inScope({ scope, name }: Check): string {
  return `${name.replace(/\/\d\d$/, '')} ${scope}`
}

function inspected(rule: string, check: Check, verdict: Verdict, key: string | null): InspectedLimit {
  const { name, scope, subject, limit } = check
  const { remaining } = verdict
  const retryAfterMs = toWaitMs(verdict.retryAfterUs)
  const resetAfterMs = toMs(verdict.resetAfterUs)
  return {
    rule,
    name,
    scope,
    subject,
    algorithm: limit.algorithm.name,
    limit: limit.limit,
    used: Math.max(0, limit.limit - remaining),
    remaining,
    retryAfterMs,
    resetAfterMs,
    key,
    text: `  ${name} by ${rule}, scope ${scope}, of ${printable(subject)}: ${limit.algorithm.describe(limit)}, ${stateWords(verdict)}`,
  }
}

function stateWords({ remaining, retryAfterUs, resetAfterUs }: Verdict): string {
  const next = toWaitMs(retryAfterUs)
  const freed = next === 0 ? '' : `; the next ${next === null ? 'never' : `in ${waitWords(next)}`}`
  const full = toMs(resetAfterUs) === 0 ? 'nothing used' : `all free in ${waitWords(toMs(resetAfterUs))}`
  return `${remaining} left${freed}; ${full}`
}

/** Rounds up, in the unit people would use. */
function waitWords(ms: number): string {
  const [size, unit] = UNITS.find(([least]) => ms >= 2 * least) ?? [1_000, 's']
  return `${Math.ceil(ms / size)} ${unit}`
}

const UNITS = [
  [86_400_000, 'days'],
  [3_600_000, 'hours'],
  [60_000, 'minutes'],
] as const
