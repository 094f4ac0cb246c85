import type { Second } from './second.js'

/** How many requests a rule decided, and how many of them it denied. */
export interface RuleCounts {
  readonly decided: number
  readonly denied: number
}

const MINUTE_MS = 60_000
const MINUTES = 60
/** Labels are bounded where they are counted; of a fleet with several files there may be more. */
const MAX_RULES = 500

/** Counts by rule over the last hour, in buckets of a minute. */
export class RuleHour {
  private minutes: {
    readonly startMs: number
    readonly byRule: Map<string, { decided: number; denied: number }>
  }[] = []

  add({ atMs, decisions }: Second): void {
    const startMs = Math.floor(atMs / MINUTE_MS) * MINUTE_MS
    let minute = this.minutes.at(-1)
    if (minute === undefined || minute.startMs < startMs) {
      minute = { startMs, byRule: new Map() }
      this.minutes = [...this.minutes, minute].slice(-MINUTES)
    }
    for (const { rule, allowed, denied } of decisions) {
      let counts = minute.byRule.get(rule ?? '')
      if (counts === undefined) {
        if (minute.byRule.size >= MAX_RULES) continue
        counts = { decided: 0, denied: 0 }
        minute.byRule.set(rule ?? '', counts)
      }
      counts.decided += allowed + denied
      counts.denied += denied
    }
  }

  /** The counts by rule, and the Unix time in milliseconds since when: an hour ago, or when counting began. */
  read(nowMs: number): { readonly sinceMs: number; readonly byRule: ReadonlyMap<string, RuleCounts> } {
    const sinceMs = nowMs - MINUTES * MINUTE_MS
    const recent = this.minutes.filter(({ startMs }) => startMs > sinceMs - MINUTE_MS)
    const sums = new Map<string, { decided: number; denied: number }>()
    for (const { byRule } of recent) {
      for (const [rule, { decided, denied }] of byRule) {
        const sum = sums.get(rule) ?? { decided: 0, denied: 0 }
        sum.decided += decided
        sum.denied += denied
        sums.set(rule, sum)
      }
    }
    return { sinceMs: Math.max(sinceMs, recent[0]?.startMs ?? nowMs), byRule: sums }
  }
}
