import type { Decision } from '../decision/decision.js'
import type { Logger } from '../observe/logger.js'
import { suppressedNote, throttleLog } from '../observe/throttled-log.js'
import { type Clock, systemClock } from '../time/clock.js'

const SAY_EVERY_MS = 60_000

/** Logs why a request could not be limited, at most once a minute, with the number of faults left out. */
export function logFaults(
  logger: Logger,
  clock: Clock = systemClock,
): (error: unknown, decision?: Pick<Decision, 'source'>) => void {
  const due = throttleLog(SAY_EVERY_MS, () => clock.nowUs() / 1000)
  return (error, decision) => {
    const isAsked = decision !== undefined && decision.source !== 'open' && decision.source !== 'closed'
    const leftOut = due(isAsked ? 'caller' : 'fault')
    if (leftOut === null) return
    const message = error instanceof Error ? error.message : String(error)
    const what = isAsked
      ? 'a caller could not be looked up, so its address was charged'
      : 'a request could not be limited, so the failure mode decided'
    logger.error({ err: error }, `${what}: ${message}${suppressedNote(leftOut)}`)
  }
}

/** The stable codes of warnings about the settings of an app, and what its functions return. */
export type AdapterWarningCode =
  | 'WARN_HEADGATE_PROXY_NOT_TRUSTED'
  | 'WARN_HEADGATE_TRUSTS_EVERYBODY'
  | 'WARN_HEADGATE_NAMES_NOBODY'
  | 'WARN_HEADGATE_NO_ADDRESS'
  | 'WARN_HEADGATE_UNUSABLE_VALUE'

/** Logs a warning, once for each code: what one request shows, the next ones do too. */
export type WarnOnce = (code: AdapterWarningCode, message: string) => void

export function warnOnce(logger: Logger): WarnOnce {
  const said = new Set<AdapterWarningCode>()
  return (code, message) => {
    if (said.has(code)) return
    said.add(code)
    logger.warn({ code }, `${code}: ${message}`)
  }
}
