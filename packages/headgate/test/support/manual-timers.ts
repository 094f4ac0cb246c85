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

/** Timers that run when the test says so, and only those whose time has come by its clock. */
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

/** When every promise that could be settled has been. */
export async function settled(): Promise<void> {
  for (let hop = 0; hop < 12; hop++) await null
}
