/**
 * Work that takes too long to do in one go while requests wait: putting a large file in force, reading thousands of
 * overrides. It is written as a generator that yields after each small step.
 */
import { systemTimers } from './clock.js'

export type Steps<Result> = Generator<void, Result, void>

/** A step takes microseconds, so this many take about a millisecond. */
const STEPS_AT_ONCE = 100

/** Does all of it before anything else can run. */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const next = steps.next()
    if (next.done === true) return next.value
  }
}

/** Does it in slices of `STEPS_AT_ONCE`, with a turn of the event loop between two of them. */
export async function runInSlices<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    for (let step = 0; step < STEPS_AT_ONCE; step++) {
      const next = steps.next()
      if (next.done === true) return next.value
    }
    await new Promise<void>(resume => systemTimers.afterThisTurn?.(resume))
  }
}
