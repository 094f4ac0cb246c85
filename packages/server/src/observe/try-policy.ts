/** Tries a policy file before anybody saves it: what is wrong with it, what it says of a request, whom it would deny. */
import { setImmediate } from 'node:timers/promises'
import { type Config, createLimiter, isHeadgateError, type RequestFacts } from 'headgate'
import { ConfigError, type ConfigIssue, type ConfigWarning, parseConfig } from 'headgate/config'
import { type ArrivalSample, referenceOf } from 'headgate/internal'
import { createStatistics } from 'headgate/metrics'
import { Replay } from '../simulate/replay.js'

export interface TriedPolicy {
  /** Its mistakes; empty for a file that can be used. */
  readonly issues: readonly Pick<ConfigIssue, 'line' | 'column' | 'path' | 'message'>[]
  readonly warnings: readonly Pick<ConfigWarning, 'line' | 'column' | 'path' | 'message'>[]
  /** Eight characters that change with the file; null for one that cannot be used. */
  readonly version: string | null
  /** What it says of the request that was asked about; null without one. */
  readonly explanation: string | null
  readonly replay: PolicyReplay | null
}

/** The last hour of a random share of the callers, decided once more by the file in force and by the other one. */
export interface PolicyReplay {
  readonly fromMs: number
  readonly toMs: number
  readonly requests: number
  readonly callers: number
  /** The share of all callers that is in the sample. */
  readonly share: number
  /** By the file in force, and by the other one. */
  readonly before: { readonly denied: number; readonly callers: number }
  readonly after: { readonly denied: number; readonly callers: number }
  /** Callers that only the other file would have denied, the worst first, and how many there are. */
  readonly newlyDenied: readonly ReplayedCaller[]
  readonly newlyDeniedCount: number
  /** How many callers only the file in force denies. */
  readonly noLongerDeniedCount: number
}

export interface ReplayedCaller {
  readonly subject: string
  readonly reference: string
  readonly denied: number
}

export interface TryOptions {
  readonly text: string
  /** Ends in `.json` for JSON. */
  readonly fileName: string
  readonly request: RequestFacts | null
  readonly inForce: Config
  arrivals(): Promise<ArrivalSample>
  show(subject: string): string
}

const MAX_CALLERS = 10
/** Requests are answered in between. */
const PLAYED_AT_ONCE = 200

export async function tryPolicy(options: TryOptions): Promise<TriedPolicy> {
  const warnings: ConfigWarning[] = []
  try {
    const config = await parseConfig(options.text, options.fileName, { onWarning: one => warnings.push(one) })
    return {
      issues: [],
      warnings,
      ...(await looked(config, options.request)),
      replay: await replay(config, options),
    }
  } catch (error) {
    if (!isHeadgateError(error)) throw error
    const whole = { line: null, column: null, path: '', message: error.message }
    const issues = error instanceof ConfigError ? error.issues : [whole]
    return { issues, warnings, version: null, explanation: null, replay: null }
  }
}

/** A limiter of its own, which asks nobody. */
async function looked(
  config: Config,
  request: RequestFacts | null,
): Promise<Pick<TriedPolicy, 'version' | 'explanation'>> {
  const statistics = createStatistics()
  const limiter = createLimiter({ config, statistics, onWarning() {} })
  try {
    const version = statistics.read().limiters[0]?.configVersion ?? null
    return { version, explanation: request === null ? null : limiter.explain(request).text }
  } finally {
    await limiter.close()
  }
}

async function replay(config: Config, { inForce, arrivals, show }: TryOptions): Promise<PolicyReplay | null> {
  const sample = await arrivals()
  const played = new Replay([
    { name: 'now', config: inForce },
    { name: 'then', config },
  ])
  const callers = new Set<string>()
  try {
    for (const [index, { subject, atMs, cost, request }] of sample.arrivals.entries()) {
      if (index % PLAYED_AT_ONCE === 0) await setImmediate()
      if (request === null) continue
      callers.add(subject)
      const { method, path, tier } = request
      await played.play({
        atMs,
        subjects: [subject],
        cost,
        ...(method !== null && { method }),
        ...(path !== null && { path }),
        // A tier that the other file does not have is not asked for.
        ...(tier !== null && tier in config.tiers && tier in inForce.tiers && { tier }),
      })
    }
    const { requests, fromMs, toMs, trials } = played.outcome()
    const [first, second] = trials
    if (requests === 0 || first === undefined || second === undefined) return null
    const before = new Set(first.deniedCallers.top(callers.size).map(({ subject }) => subject))
    const after = second.deniedCallers.top(callers.size)
    const newly = after.filter(({ subject }) => !before.has(subject))
    return {
      ...{ fromMs, toMs, requests, callers: callers.size, share: sample.share },
      before: { denied: first.denied, callers: before.size },
      after: { denied: second.denied, callers: after.length },
      newlyDenied: newly.slice(0, MAX_CALLERS).map(({ subject, denied }) => ({
        subject: show(subject),
        reference: referenceOf(subject),
        denied,
      })),
      newlyDeniedCount: newly.length,
      noLongerDeniedCount: before.size - (after.length - newly.length),
    }
  } finally {
    await played.close()
  }
}
