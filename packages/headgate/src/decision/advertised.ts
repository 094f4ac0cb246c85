import type { Quota } from '../algorithms/algorithm.js'
import { type Decision, isWider, type LimitVerdict } from './decision.js'

/**
 * Returns the limit a client may be told about: the one that binds, or null if no quota is known. A failure mode
 * looked at no limit ('open', 'closed') or only at this process's share of it ('local'), and clients would believe
 * a number made up from that.
 */
export function advertisedLimit(decision: Decision): LimitVerdict | null {
  if (decision.source !== 'redis' && decision.source !== 'memory') return null
  if (decision.reason === 'unlimited') return null
  const { binding, allowed } = decision
  return allowed && binding?.quota.unit !== undefined ? leastOfRates(decision) : binding
}

/**
 * An admitted caller is told what is left over time, if that is limited, not what is left of requests in flight.
 */
function leastOfRates({ verdicts, binding }: Decision): LimitVerdict | null {
  const rates = verdicts.filter(({ quota }) => quota.unit === undefined)
  return rates.toSorted((one, other) => one.remaining - other.remaining)[0] ?? binding
}

/**
 * Returns the limits a client is told about: its own, and of those it shares with the networks around it only the
 * one that binds.
 */
export function advertisedPolicies({ verdicts }: Decision, binding: LimitVerdict): readonly LimitVerdict[] {
  if (!verdicts.some(isWider)) return verdicts
  return verdicts.filter(verdict => verdict === binding || !isWider(verdict))
}

/** Rounded up, against the client: HTTP counts in whole seconds, and an early retry would fail. */
export function toSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}

/** Returns the window in whole seconds. One shorter than a second is 1, because a window of 0 means nothing. */
export function windowSeconds(quota: Quota): number {
  return Math.max(1, Math.ceil(quota.windowUs / 1_000_000))
}

/**
 * Returns the seconds after which a denied request is admitted if nobody else asks; null if allowed or if no wait
 * is long enough. Never 0: "retry at once" would turn a denial into a loop.
 */
export function retryAfterSeconds(decision: Decision, laterByMs = 0): number | null {
  if (decision.allowed || decision.retryAfterMs === null) return null
  return Math.max(1, toSeconds(decision.retryAfterMs + laterByMs))
}
