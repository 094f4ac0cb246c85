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
  /** By how much that may be too high. */
  readonly error: number
  readonly policy: string
  readonly tier: string | null
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
  private lookedAt = 0
  /** Denials until the next sample. Whoever counts a denial decrements it, and calls `look` at 0. */
  untilNext = 1

  constructor(
    private readonly unixMs: () => number,
    private readonly random: () => number,
  ) {}

  look(subject: string, decision: Decision): void {
    this.hitters.add(subject, this.gap, decision)
    if (this.logged.length < LOGGED_A_SECOND) this.log(subject, decision)
    if (++this.lookedAt % LOOKED_AT === 0) this.gap *= 4
    // Random, because a caller with a steady pace would otherwise be sampled always or never.
    this.untilNext = this.gap === 1 ? 1 : 1 + Math.floor(this.random() * (2 * this.gap - 1))
  }

  /** Returns the violations since the last call. */
  take(): { readonly violators: readonly Violator[]; readonly logged: readonly Violation[] } {
    const violators = this.hitters.top(TOLD).map(({ subject, count, error, detail }) => ({
      subject,
      denied: count,
      error,
      policy: detail.policy,
      tier: detail.tier,
    }))
    const { logged } = this
    this.hitters.clear()
    this.logged = []
    this.gap = 1
    this.lookedAt = 0
    this.untilNext = 1
    return { violators, logged }
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
