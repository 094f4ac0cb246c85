import { unexpected } from '../../errors/headgate-error.js'
import type { Recorder } from './recorder.js'
import type { GateReading, Statistics } from './statistics.js'

/** Where the library counts for statistics, and whom they read. */
interface Attached {
  readonly recorder: Recorder
  readonly gates: Set<() => GateReading>
}

// Apart from the class that counts: an app without statistics does not carry it.
const attached = new WeakMap<object, Attached>()

/** Says where the library counts for these statistics. */
export function attach(statistics: Statistics, to: Attached): void {
  attached.set(statistics, to)
}

/** Where the library counts for these statistics; null where there are none. */
export function recorderOf(statistics: Statistics | undefined): Recorder | null {
  if (statistics === undefined) return null
  const found = attached.get(statistics)
  if (found !== undefined) return found.recorder
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'statistics', 'what createStatistics() returns', statistics)
}

/** Lets statistics read a gate, until stopped. */
export function watchGate(statistics: Statistics | undefined, read: () => GateReading): () => void {
  const gates = statistics && attached.get(statistics)?.gates
  if (gates === undefined) return () => {}
  gates.add(read)
  return () => gates.delete(read)
}
