/**
 * Plays requests through a policy file on a virtual clock: the same limiter as in production, at the times of the log.
 */

import type { Config } from 'headgate'
import {
  type Clock,
  createLimiter,
  type Decision,
  isHeadgateError,
  memoryStore,
  type RuleLimiter,
} from 'headgate'
import type { Enforcement } from 'headgate/internal'
import { DeniedCallers } from './denied-callers.js'
import type { LoggedRequest } from './logged-request.js'
import { Peaks, type SuggestedLimit } from './peaks.js'
import { Timeline } from './timeline.js'

/**
 * The most states kept. What a log of millions of callers needs beyond that is decided as in the embedded store.
 */
const MAX_KEYS = 4_000_000

/** A policy file on trial, and what it would have done. */
export interface Trial {
  /** The name of the file. */
  readonly name: string
  /** Denied requests in all. */
  readonly denied: number
  /** Requests that only shadow limits or candidates would have denied. */
  readonly deniedInShadow: number
  /** Denials by the binding limit, `<policy>.<limit id>`. */
  readonly byLimit: ReadonlyMap<string, number>
  readonly timeline: Timeline
  readonly deniedCallers: DeniedCallers
}

/** The result of a replay. */
export interface ReplayResult {
  readonly requests: number
  /** Lines without a request. */
  readonly unread: number
  /** Requests that were earlier than the previous one, and counted as simultaneous. */
  readonly outOfOrder: number
  readonly fromMs: number
  readonly toMs: number
  readonly trials: readonly Trial[]
  /** How many callers there were, and limits a minute that few of them would have met. */
  readonly callers: number
  readonly suggested: readonly SuggestedLimit[]
  /** Requests that only the second file would have denied, and only the first; null for one file. */
  readonly differences: { readonly onlyFirst: number; readonly onlySecond: number } | null
}

/** A clock that stands where the log is. */
class LogClock implements Clock {
  atMs = 0
  nowUs(): number {
    return Math.floor(this.atMs * 1000)
  }
  unixMs(): number {
    return Math.floor(this.atMs)
  }
}

class RunningTrial implements Trial {
  denied = 0
  deniedInShadow = 0
  readonly byLimit = new Map<string, number>()
  readonly timeline = new Timeline()
  readonly deniedCallers = new DeniedCallers()
  readonly limiter: RuleLimiter
  private readonly hasShadow: boolean

  constructor(
    readonly name: string,
    config: Config,
    clock: Clock,
  ) {
    this.hasShadow = hasShadow(config)
    this.limiter = createLimiter({
      config,
      clock,
      store: memoryStore({ clock, maxKeys: MAX_KEYS }),
      onWarning() {},
    })
  }

  count(request: LoggedRequest, atMs: number, decision: Decision): boolean {
    const isDenied = !decision.allowed
    this.timeline.add(atMs, isDenied)
    if (isDenied) this.countDenial(request, atMs, decision)
    else if (this.hasShadow && decision.shadow.some(({ allowed }) => !allowed)) this.deniedInShadow++
    return isDenied
  }

  private countDenial({ subjects }: LoggedRequest, atMs: number, { binding, policy }: Decision): void {
    this.denied++
    const limit = binding?.name ?? policy
    this.byLimit.set(limit, (this.byLimit.get(limit) ?? 0) + 1)
    this.deniedCallers.add(subjects[0] ?? 'nobody', atMs)
  }
}

/** Plays requests one by one; `outcome` may be read at any time. */
export class Replay {
  private readonly clock = new LogClock()
  private readonly peaks = new Peaks()
  private readonly trials: readonly RunningTrial[]
  private requests = 0
  private unread = 0
  private outOfOrder = 0
  private fromMs = Number.NaN
  private onlyFirst = 0
  private onlySecond = 0

  /** With one file, or with two to be compared. */
  constructor(files: readonly { readonly name: string; readonly config: Config }[]) {
    this.trials = files.map(({ name, config }) => new RunningTrial(name, config, this.clock))
  }

  /** Records a line of the log without a request. */
  passOver(): void {
    this.unread++
  }

  /** Plays a request; passes over one whose caller or cost no limiter takes. */
  async play(request: LoggedRequest): Promise<void> {
    const facts = factsOf(request)
    const decisions: Decision[] = []
    const atMs = this.moveTo(request.atMs)
    try {
      for (const { limiter } of this.trials) {
        const decision = limiter.requestNow(facts)
        decisions.push(decision instanceof Promise ? await decision : decision)
      }
    } catch (error) {
      if (!isHeadgateError(error) || !/^ERR_HEADGATE_INVALID_/.test(error.code)) throw error
      return this.passOver()
    }
    this.requests++
    this.peaks.add(request.subjects[0] ?? 'nobody', atMs)
    const denials = this.trials.map((trial, index) =>
      trial.count(request, atMs, decisions[index] as Decision),
    )
    const [first, second] = denials
    if (first && second === false) this.onlyFirst++
    if (second && first === false) this.onlySecond++
  }

  outcome(): ReplayResult {
    const { requests, unread, outOfOrder, fromMs, trials, onlyFirst, onlySecond } = this
    const differences = trials.length === 2 ? { onlyFirst, onlySecond } : null
    const { size: callers } = this.peaks
    const suggested = this.peaks.suggest()
    const toMs = this.clock.atMs
    return { requests, unread, outOfOrder, fromMs, toMs, trials, callers, suggested, differences }
  }

  async close(): Promise<void> {
    for (const { limiter } of this.trials) await limiter.close()
  }

  /**
   * Servers log a request when it ends, so a log is only nearly in order; a limiter's time never runs backwards.
   */
  private moveTo(atMs: number): number {
    if (atMs < this.clock.atMs) this.outOfOrder++
    else this.clock.atMs = atMs
    if (Number.isNaN(this.fromMs)) this.fromMs = this.clock.atMs
    return this.clock.atMs
  }
}

/** Whether a decision may have shadow verdicts; looking for them costs more than many a decision. */
function hasShadow({ mode, enforcePercent, policies, rules, global }: Config): boolean {
  const isPartial = (one: Enforcement) => one.mode === 'shadow' || one.enforcePercent !== undefined
  const ofPolicies = Object.values(policies)
  return (
    mode === 'shadow' ||
    enforcePercent < 100 ||
    [...ofPolicies, ...rules, ...(global === null ? [] : [global])].some(isPartial) ||
    ofPolicies.some(({ candidate }) => candidate !== undefined)
  )
}

function factsOf({
  subjects,
  method,
  path,
  tier,
  cost,
}: LoggedRequest): Parameters<RuleLimiter['requestNow']>[0] {
  const [only, ...others] = subjects
  return {
    // A single subject is the commonest case, which the limiter answers without a question.
    subject: (others.length === 0 ? only : subjects) as string,
    ...(method !== undefined && { method }),
    ...(path !== undefined && { path }),
    ...(tier !== undefined && { tier }),
    ...(cost !== undefined && { cost }),
  }
}
