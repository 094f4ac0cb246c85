/** Timers that run when the test says so. */
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

/** When every promise that could be settled has been. */
export async function settled(): Promise<void> {
  for (let hop = 0; hop < 12; hop++) await null
}
