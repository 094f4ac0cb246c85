import type { Logger } from '../observe/logger.js'
import { andMore, sparingly } from '../observe/sparingly.js'
import { type Clock, systemClock } from '../time/clock.js'

const SAY_EVERY_MS = 60_000

/** Logs why a request could not be limited, at most once a minute, with the number of faults left out. */
export function logFaults(logger: Logger, clock: Clock = systemClock): (error: unknown) => void {
  const due = sparingly(SAY_EVERY_MS, () => clock.nowUs() / 1000)
  return error => {
    const leftOut = due('fault')
    if (leftOut === null) return
    const message = error instanceof Error ? error.message : String(error)
    logger.error(
      { err: error },
      `a request could not be limited, so the failure mode decided: ${message}${andMore(leftOut)}`,
    )
  }
}
