import type { Quota } from '../engine/limit.js'
import type { Decision } from './decision.js'
import { isWider, type LimitVerdict } from './verdicts.js'

/**
 * The limit a client may be told about: the one that binds, or null when no quota is known.
 * A failure mode looked at no limit ('open', 'closed') or only at this process's share of it ('local'); a number made
 * up from that would be believed.
 */
export function advertisedLimit(decision: Decision): LimitVerdict | null {
  if (decision.source !== 'redis' && decision.source !== 'memory') return null
  if (decision.reason === 'unlimited') return null
  const { binding, allowed } = decision
  return allowed && binding?.quota.unit !== undefined ? leastOfRates(decision) : binding
}

/** An admitted caller is told what is left of its requests over time, where that is limited, not of those under way. */
function leastOfRates({ verdicts, binding }: Decision): LimitVerdict | null {
  const rates = verdicts.filter(({ quota }) => quota.unit === undefined)
  return rates.toSorted((one, other) => one.remaining - other.remaining)[0] ?? binding
}

/**
 * The limits a client is told: its own, and of those it shares with the networks around it only the one that binds.
 */
export function advertisedPolicies({ verdicts }: Decision, binding: LimitVerdict): readonly LimitVerdict[] {
  if (!verdicts.some(isWider)) return verdicts
  return verdicts.filter(verdict => verdict === binding || !isWider(verdict))
}

/** Rounded up, against the client: HTTP counts in whole seconds, and an early answer would be wrong. */
export function toSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}

/** The window in whole seconds; one shorter than a second is told as 1, because a window of 0 means nothing. */
export function windowSeconds(quota: Quota): number {
  return Math.max(1, Math.ceil(quota.windowUs / 1_000_000))
}

/**
 * Seconds after which a denied request is admitted if nobody else asks; null when allowed or when no waiting helps.
 * Never 0: "retry at once" would turn a denial into a loop.
 */
export function retryAfterSeconds(decision: Decision, laterByMs = 0): number | null {
  if (decision.allowed || decision.retryAfterMs === null) return null
  return Math.max(1, toSeconds(decision.retryAfterMs + laterByMs))
}
