/** Which rules matched a request and why, as data and as words. */
import type { Limit } from '../engine/limit.js'
import { formatDurationUs } from '../policy/durations.js'
import type { Level } from '../policy/find-levels.js'
import type { Resolution } from '../policy/resolve.js'

export interface Explanation {
  /** Null when limits are asked; else why none is. */
  readonly unasked: 'disabled' | 'paused' | 'skipped' | null
  readonly tier: string | null
  readonly cost: number
  readonly levels: readonly ExplainedLevel[]
  /** The same in words, a line each. */
  readonly text: string
}

export interface ExplainedLevel {
  readonly level: 'route' | 'caller' | 'global'
  readonly rule: string
  /** Whether it decides, is evaluated in shadow, or gives way to a more specific one. */
  readonly part: 'decides' | 'shadow' | 'unused'
  readonly policy: string
  readonly subject: string
  readonly scope: string
  readonly mode: 'enforce' | 'shadow' | 'compare'
  readonly enforcePercent: number
  readonly limits: readonly string[]
  /** Who has temporarily replaced the numbers, and until when in Unix milliseconds. */
  readonly override: { readonly by: string; readonly reason: string; readonly expiresAt: number } | null
}

const UNASKED = {
  disabled: 'not limited: the fleet is switched off (control enabled)',
  paused: 'not limited: the fleet is paused (control multiplier 0)',
  skipped: 'not limited: the file skips this path',
}
const PARTS = {
  decides: 'decides',
  shadow: 'evaluated in shadow, never denies',
  unused: 'not asked: a more specific level decides',
}

export function explain(resolution: Resolution): Explanation {
  const { unasked, tier, cost } = resolution
  const levels = resolution.levels.map(explainLevel)
  const head = [`tier ${tier ?? 'none'}, cost ${cost}`]
  if (unasked !== null) head.unshift(UNASKED[unasked])
  return { unasked, tier, cost, levels, text: [...head, ...levels.map(levelWords)].join('\n') }
}

function explainLevel(level: Level): ExplainedLevel {
  const { rule, part, subject, scope, mode, enforcePercent, configured, override } = level
  const { name, limits } = configured.policy
  return {
    ...{ level: level.level, rule, part, policy: name, subject, scope, mode, enforcePercent },
    limits: limits.map(({ limit }) => limitWords(limit)),
    override: override === null ? null : pick(override.override),
  }
}

function limitWords(limit: Limit): string {
  const rate =
    limit.algorithm === 'token-bucket'
      ? `, refilled by ${Number(limit.refillPerSecond.toFixed(6))} a second`
      : ` in ${formatDurationUs(limit.windowUs)}`
  return `${limit.algorithm} ${limit.limit}${rate}`
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
  ]
  if (level.override !== null) {
    const { by, reason, expiresAt } = level.override
    lines.push(`  overridden by ${by} until ${new Date(expiresAt).toISOString()}: ${reason}`)
  }
  return lines.join('\n')
}
