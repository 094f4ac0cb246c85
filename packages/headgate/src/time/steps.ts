/**
 * Work that takes too long to do in one go while requests wait, such as compiling a large file or reading thousands
 * of overrides. Written as a generator that yields after each small step.
 */
import { systemTimers } from './clock.js'

export type Steps<Result> = Generator<void, Result, void>

/** A step takes microseconds, so this many take about a millisecond. */
const STEPS_AT_ONCE = 100

/** Runs all steps without interruption. */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const next = steps.next()
    if (next.done === true) return next.value
  }
}

/** Runs the steps in slices of `STEPS_AT_ONCE`, with a turn of the event loop between them. */
export async function runInSlices<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    for (let step = 0; step < STEPS_AT_ONCE; step++) {
      const next = steps.next()
      if (next.done === true) return next.value
    }
    await new Promise<void>(resume => systemTimers.afterThisTurn?.(resume))
  }
}
