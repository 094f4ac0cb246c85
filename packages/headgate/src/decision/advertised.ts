import type { Quota } from '../engine/limit.js'
import type { Decision } from './decision.js'
import type { LimitVerdict } from './limit-verdict.js'

/**
 * The limit a client may be told about: the one that binds, or null when no quota is known.
 * A failure mode looked at no limit ('open', 'closed') or only at this process's share of it ('local'); a number made
 * up from that would be believed.
 */
export function advertisedLimit(decision: Decision): LimitVerdict | null {
  if (decision.source !== 'redis' && decision.source !== 'memory') return null
  return decision.reason === 'unlimited' ? null : decision.binding
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
export function retryAfterSeconds(decision: Decision): number | null {
  if (decision.allowed || decision.retryAfterMs === null) return null
  return Math.max(1, toSeconds(decision.retryAfterMs))
}
