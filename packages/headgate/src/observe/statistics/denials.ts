import type { Decision } from '../../decision/decision.js'
import type { RequestFacts } from '../../policy/request-facts.js'
import { type AskedRequest, askedRequest } from './asked-request.js'
import { HeavyHitters } from './heavy-hitters.js'

/** A denial kept for review; its request is known if the rules of a policy file decided it. It names its subject, so whoever shows it must mask it. */
export interface Denial extends AskedRequest {
  /** Unix time in milliseconds. */
  readonly atMs: number
  readonly subject: string
  readonly policy: string
  readonly tier: string | null
  readonly rule: string | null
  readonly cost: number
  /** The limit that denied; null if none could be asked. */
  readonly limit: string | null
  readonly retryAfterMs: number | null
  readonly source: Decision['source']
  readonly reason: Decision['reason']
  /** How many denials it stands for: those of the same caller by the same rule since the last one kept, and itself. */
  readonly count: number
}

/** A denied subject, how often it was denied, and by what last. */
export interface DeniedCaller {
  readonly subject: string
  readonly denied: number
  /** By how much that may be too high, as far as denials were looked at. */
  readonly error: number
  /** By how much that may be too low: other processes, or other seconds, did not list it. Default 0. */
  readonly missed?: number
  /** At least the variance of the estimate, if not every denial was looked at. Default 0. */
  readonly variance?: number
  readonly policy: string
  readonly tier: string | null
}

/** The subjects that were denied most, and how much is not known of the others. */
export interface DeniedCallers {
  readonly deniedCallers: readonly DeniedCaller[]
  /** How often a subject that is not listed may have been denied, as far as denials were looked at. */
  readonly unlistedAtMost: number
  /** One denial in so many was looked at, at the least. */
  readonly sampledOneIn: number
}

/** How many subjects are tracked per second, and how many of them are reported. */
const ROOM = 64
const TOLD = 20
/** How many denials are kept per second. */
const KEPT_A_SECOND = 20
/** Of the same caller by the same rule: the first few, then one in this time, until it has not been denied for as long. */
const FIRST = 5
const QUIET_MS = 60_000
const MAX_TOPICS = 1_000
/** After this many samples in a second only one denial in four is sampled, then one in sixteen, and so on. */
const LOOKED_AT = 500

/** The denials of one caller by one rule. */
interface Topic {
  kept: number
  keptAtMs: number
  lastAtMs: number
  /** Denials since the last one that was kept. */
  skipped: number
}

/** Who is denied most: every denial is looked at in a quiet second, fewer and fewer in a flood. */
export class MostDenied {
  private readonly hitters = new HeavyHitters<Pick<DeniedCaller, 'policy' | 'tier'>>(ROOM)
  /** The number of denials that one sample stands for. */
  gap = 1
  private lastGap = 1
  private lookedAt = 0
  /** Denials until the next sample. Whoever counts a denial decrements it, and calls `look` at 0. */
  untilNext = 1

  constructor(private readonly random: () => number) {}

  look(subject: string, by: Pick<DeniedCaller, 'policy' | 'tier'>): void {
    this.hitters.add(subject, this.gap, by)
    this.lastGap = this.gap
    if (++this.lookedAt % LOOKED_AT === 0) this.gap *= 4
    // As if each denial were looked at with the same chance, whatever came before: so the error is known, and no
    // pace at which a caller asks is looked at always or never.
    this.untilNext =
      this.gap === 1 ? 1 : 1 + Math.floor(Math.log1p(-this.random()) / Math.log1p(-1 / this.gap))
  }

  /** Returns those since the last call. */
  take(): DeniedCallers {
    const worst = this.hitters.top(TOLD + 1)
    const unlistedAtMost = worst[TOLD]?.count ?? 0
    const deniedCallers = worst.slice(0, TOLD).map(({ subject, count, error, variance, detail }) => ({
      subject,
      denied: count,
      error,
      ...(variance > 0 && { variance }),
      policy: detail.policy,
      tier: detail.tier,
    }))
    const { lastGap: sampledOneIn } = this
    this.hitters.clear()
    this.gap = 1
    this.lastGap = 1
    this.lookedAt = 0
    this.untilNext = 1
    return { deniedCallers, unlistedAtMost, sampledOneIn }
  }
}

/** Keeps some denials for review. */
export class Denials {
  /** The one that was denied first comes first. */
  private readonly topics = new Map<string, Topic>()
  private kept: Denial[] = []

  constructor(private readonly unixMs: () => number) {}

  /** Returns those kept since the last call. */
  take(): readonly Denial[] {
    const { kept } = this
    this.kept = []
    return kept
  }

  /** Keeps a denial, if it is due. It stands for `count`. */
  look(subject: string, decision: Decision, request: RequestFacts | null, count: number): void {
    const atMs = this.unixMs()
    const topic = this.topicOf(`${subject} ${decision.policy} ${decision.rule ?? ''}`, atMs)
    topic.lastAtMs = atMs
    topic.skipped += count
    const isDue = topic.kept < FIRST || atMs - topic.keptAtMs >= QUIET_MS
    if (!isDue || this.kept.length >= KEPT_A_SECOND) return
    this.kept.push(denialOf(atMs, subject, decision, request, topic.skipped))
    topic.kept++
    topic.keptAtMs = atMs
    topic.skipped = 0
  }

  private topicOf(name: string, atMs: number): Topic {
    const known = this.topics.get(name)
    if (known !== undefined && atMs - known.lastAtMs < QUIET_MS) return known
    const topic = { kept: 0, keptAtMs: 0, lastAtMs: atMs, skipped: known?.skipped ?? 0 }
    if (known === undefined && this.topics.size >= MAX_TOPICS) {
      this.topics.delete(this.topics.keys().next().value as string)
    }
    this.topics.set(name, topic)
    return topic
  }
}

function denialOf(
  atMs: number,
  subject: string,
  decision: Decision,
  request: RequestFacts | null,
  count: number,
): Denial {
  const { policy, tier, rule, cost, retryAfterMs, source, reason } = decision
  const limit = decision.binding?.name ?? null
  const asked = askedRequest(request)
  return { atMs, subject, policy, tier, rule, cost, limit, retryAfterMs, source, reason, ...asked, count }
}
