/** The most requests of each caller in any minute: what a limit a minute would have had to be. */

/** A limit, and which share of callers it would have denied at some time, at most. */
export interface SuggestedLimit {
  readonly share: number
  readonly limitPerMinute: number
}

interface Peak {
  /** The times of the last minute, from `from` on. */
  times: number[]
  from: number
  most: number
}

const MINUTE_MS = 60_000
const SHARES = [0.001, 0.01]
/** Further callers are not looked at. */
const MAX_CALLERS = 1_000_000
const COMPACT_FROM = 1_024

export class Peaks {
  private readonly callers = new Map<string, Peak>()

  get size(): number {
    return this.callers.size
  }

  /** Counts a request; times never run backwards. */
  add(subject: string, atMs: number): void {
    let peak = this.callers.get(subject)
    if (peak === undefined) {
      if (this.callers.size >= MAX_CALLERS) return
      peak = { times: [], from: 0, most: 0 }
      this.callers.set(subject, peak)
    }
    peak.times.push(atMs)
    while ((peak.times[peak.from] as number) <= atMs - MINUTE_MS) peak.from++
    if (peak.from >= COMPACT_FROM) {
      peak.times = peak.times.slice(peak.from)
      peak.from = 0
    }
    peak.most = Math.max(peak.most, peak.times.length - peak.from)
  }

  /** Returns the lowest limits that would have denied one in a thousand callers, and one in a hundred. */
  suggest(): readonly SuggestedLimit[] {
    const most = [...this.callers.values()].map(peak => peak.most).sort((a, b) => b - a)
    if (most.length === 0) return []
    return SHARES.map(share => ({ share, limitPerMinute: most[Math.floor(share * most.length)] as number }))
  }
}
