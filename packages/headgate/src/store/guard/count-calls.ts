import type { StoreRecorder } from '../../observe/statistics/store-counts.js'
import type { Clock } from '../../time/clock.js'
import type { Waiter } from '../waiter.js'
import type { Send } from './call.js'

/** Counts calls, those that failed, and how long the others took. */
export function withCounts(next: Send, recorder: StoreRecorder, clock: Clock): Send {
  class CountedWaiter<Reply> implements Waiter<Reply> {
    readonly beganUs = clock.nowUs()

    constructor(readonly waiter: Waiter<Reply>) {}

    answered(reply: Reply): void {
      recorder.latency.add(clock.nowUs() - this.beganUs, 1)
      this.waiter.answered(reply)
    }

    failed(error: unknown): void {
      recorder.failedCalls++
      this.waiter.failed(error)
    }
  }

  return (call, waiter) => {
    recorder.calls++
    recorder.checks += call.checks
    next(call, new CountedWaiter(waiter))
  }
}
