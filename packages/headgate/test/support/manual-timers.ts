/** Creates timers that run on command. */
export function manualTimers() {
  const due = new Set<() => void>()
  const wait = (_ms: number, work: () => void) => {
    due.add(work)
    return () => due.delete(work)
  }
  return {
    timers: { after: wait, inBackground: wait, afterThisCode: queueMicrotask },
    run(): void {
      const works = [...due]
      due.clear()
      for (const work of works) work()
    },
  }
}

/** Creates timers that run on command, and only those that are due by the clock. */
export function clockTimers(clock: { nowUs(): number }) {
  const due = new Map<() => void, number>()
  const wait = (ms: number, work: () => void) => {
    due.set(work, clock.nowUs() + ms * 1_000)
    return () => due.delete(work)
  }
  return {
    timers: { after: wait, inBackground: wait, afterThisCode: queueMicrotask },
    run(): void {
      for (const [work, atUs] of [...due]) {
        if (atUs > clock.nowUs()) continue
        due.delete(work)
        work()
      }
    },
  }
}

/** Resolves when every promise that could settle has settled. */
export async function settled(): Promise<void> {
  for (let hop = 0; hop < 12; hop++) await null
}
