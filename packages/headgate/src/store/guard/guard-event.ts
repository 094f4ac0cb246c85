import type { BreakerState } from './breaker.js'
import type { FailureMode } from './failure.js'

/** What the guards have to tell. Nothing in it names a subject. */
export type GuardEvent =
  /** A call failed; `code` is that of the error. */
  | { readonly type: 'failure'; readonly code: string; readonly message: string }
  /** The breaker of a node changed. */
  | { readonly type: 'breaker'; readonly node: string; readonly state: BreakerState }
  /** A request was decided without the store. */
  | { readonly type: 'fallback'; readonly mode: FailureMode; readonly allowed: boolean }
  /** The store has forgotten what it had acknowledged: callers may get limits anew. */
  | { readonly type: 'rewind' }

export type OnGuardEvent = (event: GuardEvent) => void

/** Tells an observer without letting its own faults reach the request. */
export function safely(onEvent: OnGuardEvent): OnGuardEvent {
  return event => {
    try {
      onEvent(event)
    } catch {
      // An observer that throws has failed at observing; the decision stands.
    }
  }
}
