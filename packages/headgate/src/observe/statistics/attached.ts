import { invalidOption } from '../../errors/headgate-error.js'
import type { Recorder } from './recorder.js'
import type { LimiterReading, Statistics } from './statistics.js'

/** The recorder behind a `Statistics`, and the limiters it reads. */
interface Attached {
  readonly recorder: Recorder
  readonly limiters: Set<() => LimiterReading>
}

// Kept apart from the class that counts, so that an app without statistics does not bundle it.
const attached = new WeakMap<object, Attached>()

/** Registers the recorder of these statistics. */
export function attach(statistics: Statistics, to: Attached): void {
  attached.set(statistics, to)
}

/** Returns the recorder of these statistics; null if there are none. */
export function recorderOf(statistics: Statistics | undefined): Recorder | null {
  if (statistics === undefined) return null
  const found = attached.get(statistics)
  if (found !== undefined) return found.recorder
  throw invalidOption('statistics', 'what createStatistics() returns', statistics)
}

/** Lets statistics read a limiter, until the returned function is called. */
export function watchLimiter(statistics: Statistics | undefined, read: () => LimiterReading): () => void {
  const limiters = statistics && attached.get(statistics)?.limiters
  if (limiters === undefined) return () => {}
  limiters.add(read)
  return () => limiters.delete(read)
}
