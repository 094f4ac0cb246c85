import type { Decision } from '../decision/decision.js'
import type { Control } from '../policy/control.js'
import type { GuardEvent } from '../store/guard/guard-event.js'

/** A request was decided: a `decision` let it pass, a `denial` refused it. Each is told as one of the two. */
export interface DecisionEvent
  extends Pick<
    Decision,
    | 'allowed'
    | 'policy'
    | 'tier'
    | 'rule'
    | 'cost'
    | 'remaining'
    | 'retryAfterMs'
    | 'reason'
    | 'source'
    | 'leased'
  > {
  readonly type: 'decision' | 'denial'
}

/** A change of what a gate decides by, as this process sees it. */
export type GateEvent =
  /** Another policy file is in force. */
  | { readonly type: 'reload'; readonly rules: number }
  /** The fleet's switches have changed. */
  | { readonly type: 'control'; readonly control: Control }
  /** Overrides were set or removed; so many are stored now. */
  | { readonly type: 'override'; readonly stored: number }

/** Everything the library tells an `onEvent`. Nothing in it names a subject. */
export type HeadgateEvent = DecisionEvent | GateEvent | GuardEvent

export function decisionEvent(decision: Decision): DecisionEvent {
  const { allowed, policy, tier, rule, cost, remaining, retryAfterMs, reason, source, leased } = decision
  return {
    type: allowed ? 'decision' : 'denial',
    ...{ allowed, policy, tier, rule, cost, remaining, retryAfterMs, reason, source, leased },
  }
}
