const FIRST_DELAY_MS = 50
const LEAST_DELAY_MS = 500
const MAX_DELAY_MS = 900
const SILENT_DELAY_MS = 250

/**
 * Returns the delay before attempt `attempt` (from 1) to connect to a rejecting server: at first anything from 0 to
 * a ceiling that doubles, then 500 to 900 ms. By then a fleet that lost its server together is spread out, and a
 * server that came back is found within a second. With 0 to 900 ms it would ask more often, and a quarter of it at
 * once.
 */
export function reconnectDelayMs(attempt: number, random: () => number = Math.random): number {
  const ceilingMs = FIRST_DELAY_MS * 2 ** Math.min(attempt, 10)
  if (ceilingMs < MAX_DELAY_MS) return Math.ceil(random() * ceilingMs)
  return LEAST_DELAY_MS + Math.ceil(random() * (MAX_DELAY_MS - LEAST_DELAY_MS))
}

/** Returns the delay after an unanswered attempt: waiting for it has already spared the server. */
export function silentDelayMs(random: () => number = Math.random): number {
  return Math.ceil(random() * SILENT_DELAY_MS)
}

/** How long a connection may take to be made, and then to be greeted, whatever the client's own default. */
export const CONNECT_TIMEOUT_MS = 500
