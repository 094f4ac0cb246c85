import type { FailureMode } from '../../engine/question.js'
import type { BreakerState, Evidence } from './breaker.js'

/** Events of the guards. None names a subject. */
export type GuardEvent =
  /** A call failed; `code` is that of the error. */
  | { readonly type: 'failure'; readonly code: string; readonly message: string }
  /** The breaker of a node changed; `because` is set if calls of requests opened it. */
  | {
      readonly type: 'breaker'
      readonly node: string
      readonly state: BreakerState
      readonly because: Evidence | null
    }
  /** A request was decided without the store. */
  | { readonly type: 'fallback'; readonly mode: FailureMode; readonly allowed: boolean }
  /** The store has forgotten what it had acknowledged: callers may get limits anew. */
  | { readonly type: 'rewind' }
  /** Units of a limit were leased, to be spent in this process. */
  | { readonly type: 'lease'; readonly limit: string; readonly units: number }

export type OnGuardEvent = (event: GuardEvent) => void
