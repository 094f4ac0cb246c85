/** Writes one line for people. */
export type Log = (line: string) => void

const REMEMBERED = 1_000

/** Writes a line at most once in `everyMs` for each subject: a flood of requests must not become a flood of lines. */
export function throttledLog(log: Log, everyMs: number): (subject: string, line: () => string) => void {
  const writtenAtMs = new Map<string, number>()
  return (subject, line) => {
    const nowMs = performance.now()
    const lastMs = writtenAtMs.get(subject)
    if (lastMs !== undefined && nowMs - lastMs < everyMs) return
    // Forgetting all at once is rare, bounded and needs no order of use; the price is a line too many.
    if (writtenAtMs.size >= REMEMBERED) writtenAtMs.clear()
    writtenAtMs.set(subject, nowMs)
    log(line())
  }
}
