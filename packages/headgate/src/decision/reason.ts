/** Why a decision came out as it did. */
export type Reason =
  /** Every limit had room. */
  | 'within-limit'
  /** A limit is used up; `retryAfterMs` says when there is room again. */
  | 'limit-exceeded'
  /** The cost is above what the limit could ever give, so no wait is long enough. */
  | 'exceeds-capacity'
  /** Nothing limits this caller. */
  | 'unlimited'
  /** The fleet's switch is off: everything passes. */
  | 'disabled'
  /** The fleet's multiplier is 0: everything passes. */
  | 'paused'
  /** The policy file says that such requests are not limited. */
  | 'skipped'
  /** Every limit that applies is in shadow: `shadow` has their verdicts. */
  | 'shadow'
  /** The store could not be asked, or something failed earlier; the failure mode decided. */
  | 'store-unavailable'
