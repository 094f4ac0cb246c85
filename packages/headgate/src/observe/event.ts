import type { Decision } from '../decision/decision.js'
import type { Control } from '../policy/control.js'
import type { StoreEvent } from '../store/remote/store-event.js'

/** A request was decided: `decision` if it passed, `denial` if it was rejected. */
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

/** A change in a limiter's settings, as seen by this process, or a ban that it saw begin. */
export type LimiterEvent =
  /** Another policy file is in force. */
  | { readonly type: 'reload'; readonly rules: number }
  /** The fleet's switches have changed. */
  | { readonly type: 'control'; readonly control: Control }
  /** Overrides were set or removed; `stored` is their number now. */
  | { readonly type: 'override'; readonly stored: number }
  /**
   * A charge has used up `percent` of a quota: 80 or 100, each once in a period of a subject in the whole fleet. The subject is
   * named as it is stored.
   */
  | {
      readonly type: 'threshold'
      readonly policy: string
      readonly quota: string
      readonly percent: number
      readonly subject: string
    }
  /** A caller was denied too often and is banned, for the `level`th time. */
  | { readonly type: 'ban'; readonly policy: string; readonly level: number }

/** Every event the library passes to `onEvent`. None but `threshold` names a subject. */
export type HeadgateEvent = DecisionEvent | LimiterEvent | StoreEvent

/** Creates the event of a decision. */
export function decisionEvent(decision: Decision): DecisionEvent {
  const { allowed, policy, tier, rule, cost, remaining, retryAfterMs, reason, source, leased } = decision
  return {
    type: allowed ? 'decision' : 'denial',
    allowed,
    policy,
    tier,
    rule,
    cost,
    remaining,
    retryAfterMs,
    reason,
    source,
    leased,
  }
}
