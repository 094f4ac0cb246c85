/** What all callers have used of a policy's quotas, read from Redis a page at a time. */
import type { CheckOptions, QuotaUsage, RuleLimiter } from 'headgate'
import { keyPattern, readKey } from 'headgate/internal'
import type { RedisNode } from './nodes.js'

/** What a caller has used of a quota in one period. */
export interface ExportedUsage {
  /** As it is stored: of a key or a session, a digest. */
  readonly subject: string
  readonly policy: string
  readonly quota: string
  readonly scope: string
  readonly startsAt: string
  readonly endsAt: string
  readonly used: number
  readonly paidWithCredits: number
  readonly overage: number
}

export interface ExportOptions {
  readonly nodes: readonly RedisNode[]
  readonly limiter: RuleLimiter
  readonly prefix: string
  readonly tenant: string
  readonly policy: string
  readonly period: 'current' | 'previous'
}

/** How many keys Redis looks at in one step, so that it never blocks. */
const COUNT = '500'

/** Yields pages of callers who have used something; every caller is in one of them. `unnamed` counts long names. */
export async function* exportUsage(
  options: ExportOptions,
): AsyncGenerator<{ readonly rows: readonly ExportedUsage[]; readonly unnamed: number }> {
  const { nodes, limiter, policy, period } = options
  const ask = (scope: string) => ({ policy, scope }) as CheckOptions<string, string>
  const quotas = await limiter.usage({ stored: 'export:nobody' }, ask('global'))
  for (const { quota } of quotas) {
    const name = `${policy}.${quota}`
    // SCAN may tell a key twice, and nobody is to be billed twice.
    const seen = new Set<string>()
    for (const node of nodes) {
      for await (const keys of scan(node, keyPattern(options, name))) {
        const fresh = keys.filter(key => !seen.has(key))
        for (const key of fresh) seen.add(key)
        const states = [...new Set(fresh)].flatMap(key => readKey(options, key) ?? [])
        const rows = await Promise.all(
          states.map(async ({ subject, scope }) => {
            const usages = await limiter.usage({ stored: subject }, ask(scope))
            const usage = usages.find(one => one.quota === quota)
            return usage === undefined ? [] : rowOf(subject, usage, period)
          }),
        )
        yield { rows: rows.flat(), unnamed: fresh.filter(isUnnamed).length }
      }
    }
  }
}

async function* scan(node: RedisNode, pattern: string): AsyncGenerator<readonly string[]> {
  let cursor = '0'
  do {
    const reply = await node.send('SCAN', cursor, 'MATCH', pattern, 'COUNT', COUNT)
    const [next, keys] = reply as [string, string[]]
    cursor = String(next)
    if (keys.length > 0) yield keys.map(String)
  } while (cursor !== '0')
}

/** A part that is too long for a key is there as a digest. */
function isUnnamed(key: string): boolean {
  return key.includes('%~')
}

function rowOf(subject: string, usage: QuotaUsage, period: 'current' | 'previous'): ExportedUsage[] {
  const { policy, quota, scope } = usage
  const { startsAt, endsAt, used, paidWithCredits, overage } = period === 'current' ? usage : usage.previous
  if (used === 0) return []
  const iso = (atMs: number): string => new Date(atMs).toISOString()
  const times = { startsAt: iso(startsAt), endsAt: iso(endsAt) }
  return [{ subject, policy, quota, scope, ...times, used, paidWithCredits, overage }]
}

export const CSV_HEAD = 'subject,policy,quota,scope,startsAt,endsAt,used,paidWithCredits,overage'

/** A line of CSV. A spreadsheet takes no cell of it for a formula. */
export function csvLine(row: ExportedUsage): string {
  return CSV_HEAD.split(',')
    .map(name => cell(row[name as keyof ExportedUsage]))
    .join(',')
}

function cell(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return `"${text.replaceAll('"', '""')}"`
}
