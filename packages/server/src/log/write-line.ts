/** The fields of a line, for machines. They never name a caller whose name is a secret. */
export interface LineFields {
  readonly [field: string]: string | number | null | undefined
  /** Default `info`. */
  readonly level?: 'info' | 'warn' | 'error'
  /** Why it happened. */
  readonly cause?: string
  /** The consequence: what we do about it, and what that means for requests. */
  readonly consequence?: string
}

/** Writes one line for people, with fields for machines. */
export type WriteLine = (line: string, fields?: LineFields) => void

const REMEMBERED = 1_000
const LINES_A_SECOND = 10
const SECOND_MS = 1_000

/**
 * Writes a line at most once in `everyMs` per subject, and at most ten a second in all: a flood of requests must
 * not become a flood of lines, whoever sends it. At the end of the second it logs how many were left out.
 */
export function throttledLog(
  log: WriteLine,
  everyMs: number,
): (subject: string, line: () => string, fields?: LineFields | (() => LineFields)) => void {
  const writtenAtMs = new Map<string, number>()
  let written = 0
  let leftOut = 0
  let isCounting = false

  function endSecond(): void {
    isCounting = false
    written = 0
    if (leftOut === 0) return
    log(`${leftOut} more like these in the last second`)
    leftOut = 0
  }

  return (subject, line, fields) => {
    const nowMs = performance.now()
    const lastMs = writtenAtMs.get(subject)
    if (lastMs !== undefined && nowMs - lastMs < everyMs) return
    // Clearing the whole map is rare, bounded and needs no tracking of use; the price is an extra line.
    if (writtenAtMs.size >= REMEMBERED) writtenAtMs.clear()
    writtenAtMs.set(subject, nowMs)
    if (!isCounting) setTimeout(endSecond, SECOND_MS).unref()
    isCounting = true
    if (written >= LINES_A_SECOND) {
      leftOut++
      return
    }
    written++
    log(line(), typeof fields === 'function' ? fields() : fields)
  }
}
