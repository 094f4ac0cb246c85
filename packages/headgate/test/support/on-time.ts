import { monitorEventLoopDelay } from 'node:perf_hooks'

/** A timer later than this shows that other programs had the machine. */
const LATE_MS = 40
const ROUNDS = 4

/**
 * Runs a test that holds milliseconds. If it fails while the machine was late, that says nothing, so it is run again;
 * on a machine that was on time it fails at once.
 */
export async function onTime(test: () => Promise<void>): Promise<void> {
  for (let round = 1; ; round++) {
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    try {
      return await test()
    } catch (error) {
      const lateMs = delay.percentile(99) / 1e6
      if (round === ROUNDS || lateMs < LATE_MS) throw error
      console.info(`round ${round}: timers were ${Math.round(lateMs)} ms late: again`)
    } finally {
      delay.disable()
    }
  }
}
