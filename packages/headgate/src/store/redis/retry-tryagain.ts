import type { Clock, Timers } from '../../time/clock.js'
import type { RunScript } from './script-runner.js'

/** The pause between two attempts: a slot has usually moved within milliseconds. */
export const TRYAGAIN_PAUSE_MS = 3

interface Timing {
  readonly deadlineMs: number
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * Resends what a cluster refused with TRYAGAIN, as long as the call may take: while a slot moves, a script whose
 * keys are not all on one side is not run at all.
 */
export function retryTryAgain(run: RunScript, { deadlineMs, clock, timers }: Timing): RunScript {
  const pause = (): Promise<void> => new Promise(resolve => void timers.after(TRYAGAIN_PAUSE_MS, resolve))
  return async (script, keys, args) => {
    const giveUpAtUs = clock.nowUs() + (deadlineMs - TRYAGAIN_PAUSE_MS) * 1000
    for (;;) {
      try {
        return await run(script, keys, args)
      } catch (error) {
        const refused = error instanceof Error && error.message.startsWith('TRYAGAIN')
        if (!refused || clock.nowUs() >= giveUpAtUs) throw error
      }
      await pause()
    }
  }
}
