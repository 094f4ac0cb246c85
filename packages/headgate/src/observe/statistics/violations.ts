import type { Decision } from '../../decision/decision.js'
import { HeavyHitters } from './heavy-hitters.js'

/** A denial recorded for review. It names its subject, so whoever shows it must mask it. */
export interface Violation {
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
}

/** A denied subject, how often it was denied, and by what last. */
export interface Violator {
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
export interface Violators {
  readonly violators: readonly Violator[]
  /** How often a subject that is not listed may have been denied, as far as denials were looked at. */
  readonly unlistedAtMost: number
  /** One denial in so many was looked at, at the least. */
  readonly sampledOneIn: number
}

/** How many subjects are tracked per second, and how many of them are reported. */
const ROOM = 64
const TOLD = 20
/**
 * How many denials are recorded per second, and for how long the same subject and policy are not recorded again.
 */
const LOGGED_A_SECOND = 10
const QUIET_MS = 60_000
const MAX_QUIET = 1_000
/** After this many samples in a second only one denial in four is sampled, then one in sixteen, and so on. */
const LOOKED_AT = 500

/** Samples denials: all of them in a quiet second, fewer and fewer in a flood. */
export class Violations {
  private readonly hitters = new HeavyHitters<Decision>(ROOM)
  private readonly quietUntilMs = new Map<string, number>()
  private logged: Violation[] = []
  /** The number of denials that one sample stands for. */
  private gap = 1
  private lastGap = 1
  private lookedAt = 0
  /** Denials until the next sample. Whoever counts a denial decrements it, and calls `look` at 0. */
  untilNext = 1

  constructor(
    private readonly unixMs: () => number,
    private readonly random: () => number,
  ) {}

  look(subject: string, decision: Decision): void {
    this.hitters.add(subject, this.gap, decision)
    this.lastGap = this.gap
    if (this.logged.length < LOGGED_A_SECOND) this.log(subject, decision)
    if (++this.lookedAt % LOOKED_AT === 0) this.gap *= 4
    // As if each denial were looked at with the same chance, whatever came before: so the error is known, and no
    // pace at which a caller asks is looked at always or never.
    this.untilNext =
      this.gap === 1 ? 1 : 1 + Math.floor(Math.log1p(-this.random()) / Math.log1p(-1 / this.gap))
  }

  /** Returns the violations since the last call. */
  take(): Violators & { readonly logged: readonly Violation[] } {
    const worst = this.hitters.top(TOLD + 1)
    const unlistedAtMost = worst[TOLD]?.count ?? 0
    const violators = worst.slice(0, TOLD).map(({ subject, count, error, variance, detail }) => ({
      subject,
      denied: count,
      error,
      ...(variance > 0 && { variance }),
      policy: detail.policy,
      tier: detail.tier,
    }))
    const { logged, lastGap: sampledOneIn } = this
    this.hitters.clear()
    this.logged = []
    this.gap = 1
    this.lastGap = 1
    this.lookedAt = 0
    this.untilNext = 1
    return { violators, unlistedAtMost, sampledOneIn, logged }
  }

  private log(subject: string, decision: Decision): void {
    const { policy, tier, rule, cost, retryAfterMs, source, reason } = decision
    const topic = `${subject} ${policy}`
    const atMs = this.unixMs()
    if (atMs < (this.quietUntilMs.get(topic) ?? 0)) return
    if (this.quietUntilMs.size >= MAX_QUIET) this.quietUntilMs.clear()
    this.quietUntilMs.set(topic, atMs + QUIET_MS)
    const limit = decision.binding?.name ?? null
    this.logged.push({ atMs, subject, policy, tier, rule, cost, limit, retryAfterMs, source, reason })
  }
}
