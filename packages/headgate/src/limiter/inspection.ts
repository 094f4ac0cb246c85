/**
 * Everything that is kept about a subject: which limits, how much of each is left, and where it is stored.
 */
import type { BanStanding } from '../algorithms/algorithm.js'
import { type Check, stateOf } from '../check/check.js'
import type { PendingCheck } from '../check/pending-check.js'
import type { Plans } from '../check/plans.js'
import { toMs, toWaitMs } from '../decision/decision.js'
import { HeadgateError } from '../errors/headgate-error.js'
import { printable } from '../errors/shown-text.js'
import type { Ipv6Budgets } from '../policy/ipv6-budgets.js'
import type { KeptState } from '../policy/rules.js'
import { redisKey } from '../subject/key.js'

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
  /** How the subject stands with a ban that grows; null for any other limit. */
  readonly ban: BanStanding | null
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
  readonly budgets: Ipv6Budgets
  readonly plans: Plans
  /** Asks the store itself. */
  ask(check: PendingCheck): Promise<unknown>
  /** Where the decisions of the store come from. */
  readonly source: string
  /** The prefix and tenant of the keys, if the store has any. */
  readonly fleet: { readonly prefix: string; readonly tenant: string } | undefined
}

const MAX_STATES = 1_000
/** How many are asked at once. */
const SLICE = 100

/** Looks at these states of a subject, each once, under the first that mentions it. */
export async function inspect(
  inspector: Inspector,
  subject: string,
  tier: string | null,
  states: readonly KeptState[],
): Promise<Inspection> {
  const all = eachStateOnce(states)
  const looked = all.slice(0, MAX_STATES)
  const limits: InspectedLimit[] = []
  for (let from = 0; from < looked.length; from += SLICE) {
    limits.push(...(await look(inspector, looked.slice(from, from + SLICE))))
  }
  const head = `${subject}: tier ${tier ?? 'none'}`
  return {
    subject,
    tier,
    limits,
    truncated: all.length > MAX_STATES,
    text: [head, ...limits.map(({ text }) => text)].map(printable).join('\n'),
  }
}

/** Each state once, under the first that mentions it. */
export function eachStateOnce(states: readonly KeptState[]): KeptState[] {
  const byState = new Map<string, KeptState>()
  for (const state of states) {
    const key = stateOf(state.check)
    if (!byState.has(key)) byState.set(key, state)
  }
  return [...byState.values()]
}

async function look(
  { plans, ask, source, budgets, fleet }: Inspector,
  states: readonly KeptState[],
): Promise<readonly InspectedLimit[]> {
  const known = new Map(states.map(state => [inScope(state.check), state]))
  const list = budgets.widen({ alternatives: [states.map(({ check }) => check)], shadow: [] })
  const checks = list.alternatives[0] ?? []
  const asked = plans.pending(list, { isPeek: true })
  asked.isInternal = true
  await ask(asked).catch(unanswered)
  // A guess of this process is no answer to somebody who wants to know what is stored.
  if (checks.length > 0 && asked.source !== source) unanswered()
  return checks.flatMap((check, index) => {
    const { rule, isExpected } = known.get(inScope(check)) as KeptState
    const key = fleet === undefined ? null : redisKey({ ...fleet, ...check })
    const isShown = isExpected || asked.left(index) < check.limit.limit || asked.resetAfter(index) > 0
    return isShown ? [inspected(rule, check, asked, index, key)] : []
  })
}

function unanswered(cause?: unknown): never {
  const mistake = { field: 'store', expected: 'an answer', got: 'none' }
  throw new HeadgateError('ERR_HEADGATE_STORE_UNAVAILABLE', mistake, { cause })
}

/** The same scope for a caller and for the networks around it, whose limits are named `<name>/<bits>`. */
function inScope({ scope, name }: Check): string {
  return `${name.replace(/\/\d\d$/, '')} ${scope}`
}

function inspected(
  rule: string,
  check: Check,
  asked: PendingCheck,
  index: number,
  key: string | null,
): InspectedLimit {
  const { name, scope, subject, limit } = check
  const remaining = asked.left(index)
  const retryAfterMs = toWaitMs(asked.wait(index))
  const resetAfterMs = toMs(asked.resetAfter(index))
  const now = { remaining, waitMs: retryAfterMs ?? 0, resetAfterMs, told: asked.toldBeside(index) }
  const standing = limit.algorithm.standing?.(limit, now, roughly)
  const words = standing?.text ?? stateWords(remaining, retryAfterMs, resetAfterMs)
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
    ban: standing?.ban ?? null,
    key,
    text: `  ${name} by ${rule}, scope ${scope}, of ${printable(subject)}: ${limit.algorithm.describe(limit)}, ${words}`,
  }
}

function stateWords(remaining: number, next: number | null, resetAfterMs: number): string {
  const freed = next === 0 ? '' : `; the next ${next === null ? 'never' : `in ${roughly(next)}`}`
  const full = resetAfterMs === 0 ? 'nothing used' : `all free in ${roughly(resetAfterMs)}`
  return `${remaining} left${freed}; ${full}`
}

/** Rounds up, in the unit people would use. */
function roughly(ms: number): string {
  const [size, unit] = UNITS.find(([least]) => ms >= 2 * least) ?? [1_000, 's']
  return `${Math.ceil(ms / size)} ${unit}`
}

const UNITS = [
  [86_400_000, 'days'],
  [3_600_000, 'hours'],
  [60_000, 'minutes'],
] as const
