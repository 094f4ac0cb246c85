const FIRST_DELAY_MS = 50
const MAX_DELAY_MS = 2_000

/**
 * Delay before attempt `attempt` (from 1), spread over the whole interval: after an outage a fleet that waits
 * 2 s ± 200 ms comes back as one herd, a fleet that waits anything from 0 to 2 s does not.
 */
export function fullJitterMs(attempt: number, random: () => number = Math.random): number {
  const ceilingMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempt, 10))
  return Math.ceil(random() * ceilingMs)
}

/** How long a connection may take to be made, whatever the client's own default. */
export const CONNECT_TIMEOUT_MS = 500
