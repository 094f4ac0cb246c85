/** What happened, line by line, as it is printed for a seed. Two runs of a seed have the same text. */
export interface History {
  readonly lines: readonly string[]
  /** `what` is asked for only where the history is kept: most runs are never read. */
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
