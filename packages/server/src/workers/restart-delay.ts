const FIRST_MS = 100
const LONGEST_MS = 10_000

/** How long to wait before a worker is started in the place of one that ended: longer each time, if that happens again. */
export function restartDelayMs(endedInARow: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, endedInARow - 1))
}
