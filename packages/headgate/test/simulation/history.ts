/** The events of a run, line by line, as printed for a seed. Two runs of a seed give the same text. */
export interface History {
  readonly lines: readonly string[]
  /** `what` is called only if the history is kept, because most runs are never read. */
  write(who: string, what: () => string): void
}

export function createHistory(nowUs: () => number): History {
  const lines: string[] = []
  return {
    lines,
    write(who, what) {
      lines.push(`${(nowUs() / 1000).toFixed(3).padStart(10)} ${who.padEnd(6)} ${what()}`)
    },
  }
}

export const noHistory: History = { lines: [], write: () => {} }
