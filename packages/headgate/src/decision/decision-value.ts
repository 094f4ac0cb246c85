import type { Decision } from './decision.js'

/** A decision as a plain object. */
export type DecisionValue = Pick<
  Decision,
  | 'allowed'
  | 'limit'
  | 'remaining'
  | 'resetAt'
  | 'resetAfterMs'
  | 'retryAfterMs'
  | 'cost'
  | 'policy'
  | 'tier'
  | 'rule'
  | 'source'
  | 'leased'
  | 'reason'
  | 'binding'
  | 'verdicts'
  | 'shadow'
>

/** Reads every field, including those a decision computes lazily. */
export function decisionValue(decision: Decision): DecisionValue {
  return {
    allowed: decision.allowed,
    limit: decision.limit,
    remaining: decision.remaining,
    resetAt: decision.resetAt,
    resetAfterMs: decision.resetAfterMs,
    retryAfterMs: decision.retryAfterMs,
    cost: decision.cost,
    policy: decision.policy,
    tier: decision.tier,
    rule: decision.rule,
    source: decision.source,
    leased: decision.leased,
    reason: decision.reason,
    binding: decision.binding,
    verdicts: decision.verdicts,
    shadow: decision.shadow,
  }
}
