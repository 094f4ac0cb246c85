import type { DecisionSource } from '../../check/check.js'
import { Latencies, type LatencyCounts } from './latencies.js'

/** The labels under which decisions are counted together: names of the policy file, never a subject. */
export interface TallyLabels {
  readonly policy: string
  readonly tier: string | null
  readonly rule: string | null
  readonly source: DecisionSource
}

/** The counts of such decisions. */
export interface TallyCounts extends TallyLabels {
  readonly allowed: number
  readonly denied: number
  /** Allowed with at most a tenth of the limit left. */
  readonly nearLimit: number
  /** Decisions by latency. Some stand for others, so that the total is about the number of decisions. */
  readonly latency: LatencyCounts
  /** The time of those that were held until there was room, or until their time was over; null if none was. */
  readonly waited: LatencyCounts | null
}

/** Counts the decisions of one policy, tier, rule and source. */
export class Tally {
  allowed = 0
  denied = 0
  nearLimit = 0
  readonly latency = new Latencies()
  waited: Latencies | null = null

  constructor(readonly labels: TallyLabels) {}

  read(): TallyCounts {
    const { labels, allowed, denied, nearLimit, latency, waited } = this
    return { ...labels, allowed, denied, nearLimit, latency: latency.read(), waited: waited?.read() ?? null }
  }
}

/** The policy label of everything beyond `MAX_TALLIES`. */
const OTHER = 'other'

/**
 * Further tallies are counted as `other`. A file can have ten thousand rules, and a scrape with a series for each
 * would be useless.
 */
const MAX_TALLIES = 50

/** The tallies by their labels. */
export class Tallies {
  private readonly byPolicy = new Map<string, Tally[]>()
  private count = 0

  find(policy: string, tier: string | null, rule: string | null, source: DecisionSource): Tally {
    const known = this.byPolicy.get(policy)
    if (known !== undefined) {
      for (const tally of known) {
        const { labels } = tally
        if (labels.rule === rule && labels.tier === tier && labels.source === source) return tally
      }
    }
    return this.add(policy, tier, rule, source)
  }

  private add(policy: string, tier: string | null, rule: string | null, source: DecisionSource): Tally {
    if (this.count >= MAX_TALLIES && policy !== OTHER) return this.find(OTHER, null, null, source)
    this.count++
    const tally = new Tally({ policy, tier, rule, source })
    const known = this.byPolicy.get(policy)
    if (known === undefined) this.byPolicy.set(policy, [tally])
    else known.push(tally)
    return tally
  }

  read(): TallyCounts[] {
    return [...this.byPolicy.values()].flat().map(tally => tally.read())
  }
}
