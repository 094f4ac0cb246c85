/** Counts requests in flight per name, up to a bound. Knows only names that have some. */
export interface InFlight {
  /** Takes a permit and returns a function that gives it back, once; null if there is none left. */
  enter(name: string): (() => void) | null
}

/** `max` 0 means no bound. */
export function countInFlight(max: number): InFlight {
  const counts = new Map<string, number>()
  return {
    enter(name) {
      const count = counts.get(name) ?? 0
      if (max > 0 && count >= max) return null
      counts.set(name, count + 1)
      let isIn = true
      return () => {
        if (!isIn) return
        isIn = false
        const left = (counts.get(name) ?? 1) - 1
        if (left === 0) counts.delete(name)
        else counts.set(name, left)
      }
    },
  }
}
