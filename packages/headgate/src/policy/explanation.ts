/** Explains which rules matched a request and why, as data and in words. */
import { printable } from '../errors/shown-text.js'
import type { AppliedLevel } from './applied-level.js'
import type { RequestReading } from './found-routes.js'
import type { Ipv6Budgets } from './ipv6-budgets.js'
import { writtenBound } from './refund-rate.js'
import type { Resolution } from './resolution.js'
import { statusesWords } from './statuses.js'
import { waitWords } from './wait.js'

export interface Explanation {
  /** Why no limit is asked; null if some are. */
  readonly bypass: 'disabled' | 'paused' | 'skipped' | null
  readonly tier: string | null
  readonly cost: number
  readonly levels: readonly ExplainedLevel[]
  /** The same in words, one line each. */
  readonly text: string
}

export interface ExplainedLevel {
  readonly level: 'route' | 'caller' | 'global'
  readonly rule: string
  /** Whether it decides, is evaluated in shadow, or yields to a more specific level. */
  readonly part: 'decides' | 'shadow' | 'unused'
  readonly policy: string
  readonly subject: string
  readonly scope: string
  readonly mode: 'enforce' | 'shadow' | 'compare'
  readonly enforcePercent: number
  readonly limits: readonly string[]
  /** Further subjects of the request that are charged with it, and their policies and limits. */
  readonly also: readonly string[]
  /** Response statuses that give back the charge, as written in the file. */
  readonly refundIf: readonly string[]
  /** How much they give back at most: rates, or `limit`, as much as the limits admit. */
  readonly refundAtMost: readonly string[]
  /** The tokens of a model that it limits: what is reserved, and of which limits. */
  readonly tokens: readonly string[]
  /** How long a request may wait for room, in words; null if it is denied at once. */
  readonly wait: string | null
  /** The budgets shared with the networks around an IPv6 caller. */
  readonly wider: readonly string[]
  /** The readings that lead to it, as method and path, if only some do; null if all do. */
  readonly readAs: readonly string[] | null
  /** The operator who replaced the numbers, and until when in Unix milliseconds. */
  readonly override: { readonly by: string; readonly reason: string; readonly expiresAt: number } | null
}

const BYPASS = {
  disabled: 'not limited: the fleet is switched off (control enabled)',
  paused: 'not limited: the fleet is paused (control multiplier 0)',
  skipped: 'not limited: the file skips this path',
}
const PARTS = {
  decides: 'decides',
  shadow: 'evaluated in shadow, never denies',
  unused: 'skipped: a more specific level decides',
}

export function explain(resolution: Resolution, budgets: Ipv6Budgets): Explanation {
  const { bypass, tier, cost } = resolution
  const all = new Set(resolution.levels.flatMap(({ readings }) => readings))
  const levels = resolution.levels.map(level => ({
    ...explainLevel(level, budgets),
    readAs: readAs(level, all.size),
  }))
  const head = [`tier ${tier ?? 'none'}, cost ${cost}`]
  if (bypass !== null) head.unshift(BYPASS[bypass])
  return { bypass, tier, cost, levels, text: [...head, ...levels.map(levelWords)].join('\n') }
}

function explainLevel(applied: AppliedLevel, budgets: Ipv6Budgets): Omit<ExplainedLevel, 'readAs'> {
  const { level, part, subject, also } = applied
  const { rule, scope, mode, enforcePercent, configured, override, refundIf, wait } = level
  const { name, limits } = configured.policy
  return {
    level: level.level,
    rule,
    part,
    policy: name,
    subject,
    scope,
    mode,
    enforcePercent,
    limits: limits.map(({ limit }) => limit.algorithm.describe(limit)),
    also: also.flatMap(other =>
      other.configured.policy.limits.map(
        ({ limit }) =>
          `${other.subject}, policy ${other.configured.policy.name}: ${limit.algorithm.describe(limit)}`,
      ),
    ),
    refundIf: (refundIf?.statuses ?? []).map(statusesWords),
    refundAtMost: (refundIf?.atMost ?? []).map(writtenBound),
    tokens: applied.meters.map(meterWords),
    wait: wait === null ? null : waitWords(wait),
    wider: budgets
      .around(subject, limits)
      .flatMap(wider =>
        wider.limits.map(limit => `all of ${wider.network}: ${limit.algorithm.describe(limit)}`),
      ),
    override: override === null ? null : pick(override.override),
  }
}

function meterWords({ meter: { meter, reserve, from }, level }: AppliedLevel['meters'][number]): string {
  const { name, limits } = level.level.configured.policy
  const told = from.length === 0 ? '' : `${from.join(' or ')} of the body, or else `
  const words = limits.map(({ limit }) => limit.algorithm.describe(limit)).join('; ')
  const watched = level.isShadow ? ', in shadow' : ''
  return `${meter} tokens, policy ${name}${watched}: reserves ${told}${reserve} of ${words || 'no limit'}`
}

function readAs({ readings }: AppliedLevel, inAll: number): readonly string[] | null {
  return new Set(readings).size === inAll ? null : [...new Set(readings.map(readingWords))]
}

function readingWords({ method, segments }: RequestReading): string {
  return [method, segments === null ? null : `/${segments.join('/')}`].filter(word => word !== null).join(' ')
}

function pick({ by, reason, expiresAt }: { by: string; reason: string; expiresAt: number }) {
  return { by, reason, expiresAt }
}

function levelWords(level: ExplainedLevel): string {
  const share =
    level.mode === 'enforce' && level.enforcePercent < 100 ? ` (${level.enforcePercent}% of subjects)` : ''
  const lines = [
    `${level.level}: rule ${level.rule}, policy ${level.policy}: ${PARTS[level.part]}`,
    `  charged to ${level.subject}, scope ${level.scope}, mode ${level.mode}${share}`,
    ...(level.limits.length === 0 ? ['  unlimited'] : level.limits.map(limit => `  ${limit}`)),
    ...level.wider.map(limit => `  ${limit}`),
    ...level.also.map(other => `  and to ${other}`),
    ...level.tokens.map(meter => `  ${meter}`),
  ]
  if (level.refundIf.length > 0) {
    const bounds = level.refundAtMost.map(bound =>
      bound === 'limit' ? 'as much as the limits admit' : bound,
    )
    lines.push(
      `  given back by a response with ${level.refundIf.join(', ')}, at most ${bounds.join(' and ')}`,
    )
  }
  if (level.wait !== null) lines.push(`  ${level.wait}`)
  if (level.readAs !== null && level.readAs.length > 0)
    lines.push(`  where it is read as ${shortList(level.readAs)}`)
  if (level.override !== null) {
    const { by, reason, expiresAt } = level.override
    lines.push(`  overridden by ${by} until ${new Date(expiresAt).toISOString()}: ${reason}`)
  }
  return lines.map(printable).join('\n')
}

const LISTED = 4

function shortList(words: readonly string[]): string {
  const listed = words.slice(0, LISTED).join(', ')
  return words.length > LISTED ? `${listed} and ${words.length - LISTED} other ways` : listed
}
