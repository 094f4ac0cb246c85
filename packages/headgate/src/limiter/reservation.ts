import type { Decision } from '../decision/decision.js'

/** An estimate that was charged, of which the true cost is known later. */
export interface Reservation {
  readonly decision: Decision
  /**
   * Says what the request did cost, once: the rest of the estimate comes back, or what is missing is charged, whether it
   * fits or not. Unsettled, the estimate stands. Does nothing for a request that was denied.
   */
  settle(actual: number): Promise<void>
}

export function reservationOf(
  decision: Decision,
  settle: (decision: Decision, actual: number) => Promise<void>,
): Reservation {
  return {
    decision,
    settle: async actual => {
      if (decision.allowed) await settle(decision, actual)
    },
  }
}
