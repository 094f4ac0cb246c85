import { NEVER } from '../engine/limit.js'
import type { Verdict } from '../engine/question.js'

/** Why a decision came out as it did. */
export type Reason =
  /** Every limit had room. */
  | 'within-limit'
  /** A limit is used up; `retryAfterMs` says when there is room again. */
  | 'limit-exceeded'
  /** The cost is above what the limit could ever give: no waiting helps. */
  | 'exceeds-capacity'
  /** Nothing limits this caller. */
  | 'unlimited'
  /** The fleet's switch is off: everything passes. */
  | 'disabled'
  /** The fleet's multiplier is 0: everything passes. */
  | 'paused'
  /** The policy file says that such requests are not limited. */
  | 'skipped'
  /** Every limit that applies is in shadow: `shadow` says what they would have answered. */
  | 'shadow'
  /** The store, or anything at all, could not be asked; the failure mode let the request pass or refused it. */
  | 'store-unavailable'

/** The reason that the binding verdict gives; undefined is one of a caller that nothing limits. */
export function reasonOf(allowed: boolean, binding: Verdict | undefined): Reason {
  if (binding === undefined) return 'unlimited'
  if (allowed) return 'within-limit'
  return binding.retryAfterUs === NEVER ? 'exceeds-capacity' : 'limit-exceeded'
}
