import type { Logger } from '../observe/logger.js'

/** The stable codes of warnings about what the functions of an app return. */
export type AdapterWarningCode =
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
